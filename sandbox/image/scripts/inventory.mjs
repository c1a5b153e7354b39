// Prints what the installed Pi knows about model providers, as JSON. It asks Pi's own provider objects: which
// environment variables they look up, and which hosts an OAuth refresh calls, seen by a fetch that answers itself.
import { existsSync } from "node:fs";

const modules = "/opt/pi/node_modules";
const nested = `${modules}/@earendil-works/pi-coding-agent/node_modules/@earendil-works/pi-ai`;
const piAI = existsSync(nested) ? nested : `${modules}/@earendil-works/pi-ai`;
const { builtinProviders } = await import(`${piAI}/dist/providers/all.js`);

const never = new AbortController().signal;
const host = (url) => {
	try {
		return new URL(url).hostname;
	} catch {
		return "";
	}
};

// One resolution with the given variables set; returns the names it looked up, in order.
async function lookups(apiKey, set, filesExist) {
	const asked = [];
	const ctx = {
		env: async (name) => {
			if (!asked.includes(name)) asked.push(name);
			return set.has(name) ? "placeholder" : undefined;
		},
		fileExists: async () => filesExist,
	};
	try {
		await apiKey.resolve({ ctx, credential: undefined, signal: never });
	} catch {
		// What was asked before the failure counts.
	}
	return asked;
}

// Names in order of precedence. A variable that is only looked up once another is set follows that one.
async function keyEnv(apiKey) {
	if (!apiKey) return [];
	const names = await lookups(apiKey, new Set(), false);
	for (let i = 0; i < names.length; i++) {
		for (const files of [false, true]) {
			const more = await lookups(apiKey, new Set([names[i]]), files);
			names.splice(i + 1, 0, ...more.filter((name) => !names.includes(name)));
		}
	}
	return names;
}

const claims = Buffer.from(
	JSON.stringify({ exp: 4102444800, "https://api.openai.com/auth": { chatgpt_account_id: "placeholder" } }),
).toString("base64url");
const token = `e30.${claims}.placeholder`;
const answer = {
	access_token: token, refresh_token: token, id_token: token, token, token_type: "Bearer", scope: "",
	expires_in: 3600, expires_at: 4102444800, data: [], models: [],
};

async function refreshCalls(oauth, credential) {
	const called = [];
	const realFetch = globalThis.fetch;
	globalThis.fetch = async (input) => {
		called.push(host(typeof input === "string" || input instanceof URL ? input : input.url));
		return new Response(JSON.stringify(answer), { status: 200, headers: { "content-type": "application/json" } });
	};
	try {
		await oauth.refresh(credential, never);
		return { called };
	} catch (failure) {
		return { called, failure };
	} finally {
		globalThis.fetch = realFetch;
	}
}

async function tokenHosts(id, oauth, modelHosts) {
	const credential = { type: "oauth", access: token, refresh: token, expires: 0 };
	let { called, failure } = await refreshCalls(oauth, credential);
	if (failure && called.length === 0) {
		// Some flows want more fields of the credential than these: say anything is there.
		const generous = new Proxy(credential, {
			get: (target, name) => target[name] ?? (typeof name === "string" && name !== "then" ? "placeholder" : undefined),
		});
		({ called, failure } = await refreshCalls(oauth, generous));
	}
	// A refresh that failed before it called anyone told nothing: an empty list would be a guess.
	if (failure && called.length === 0) throw new Error(`oauth refresh of ${id}: ${failure.message}`);
	return [...new Set(called)].filter((name) => name && !name.includes("placeholder") && !modelHosts.has(name)).sort();
}

const providers = {};
for (const provider of builtinProviders()) {
	const models = provider.getModels().map((model) => ({
		id: model.id,
		api: model.api,
		baseUrl: model.baseUrl ?? "",
		contextWindow: model.contextWindow ?? 0,
	}));
	models.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
	const baseUrls = {};
	for (const model of models) baseUrls[model.baseUrl] = (baseUrls[model.baseUrl] ?? 0) + 1;
	const modelHosts = new Set(Object.keys(baseUrls).map(host));
	const oauth = provider.auth?.oauth;
	providers[provider.id] = {
		name: provider.name,
		baseUrls,
		apis: [...new Set(models.map((model) => model.api))].sort(),
		keyEnv: await keyEnv(provider.auth?.apiKey),
		models,
		...(oauth && { oauth: { name: oauth.name, tokenHosts: await tokenHosts(provider.id, oauth, modelHosts) } }),
	};
}
process.stdout.write(JSON.stringify({ providers }));
