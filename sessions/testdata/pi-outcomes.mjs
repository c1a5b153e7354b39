// Records what real Pi does with each file of corpus/, into pi-outcomes.json:
//
//	node pi-outcomes.mjs NODE PI_CLI_JS SCRATCH_DIR
//
// Pi gets a copy of each file, no network and no model that answers. A file that makes
// Pi spin is given up after a while. ONLY=a.jsonl,b.jsonl records those alone.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [node, cli, scratch] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const corpus = join(here, "corpus");
const giveUpMs = 30000;

const agentDir = join(scratch, "agent");
mkdirSync(agentDir, { recursive: true });
const model = (id) => ({ id, name: id, reasoning: true, input: ["text", "image"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 100000, maxTokens: 1000 });
writeFileSync(join(agentDir, "models.json"), JSON.stringify({
	providers: { fake: { baseUrl: "http://192.0.2.1/v1", apiKey: "none", api: "openai-completions", models: ["fake-1", "fake-2"].map(model) } },
}));

const short = (m) => {
	const c = m.content;
	const text = m.summary ?? m.command ?? (typeof c === "string" ? c : Array.isArray(c) ? c.map((b) => (b?.type === "text" ? b.text : `<${b?.type}>`)).join(" ") : "");
	return `${m.role}: ${text}`.slice(0, 80);
};

// Pi writes a model and a thinking level of its own when it opens a file without them.
function lastOfFile(nodes, id, before) {
	const entries = new Map();
	const stack = [...nodes];
	for (let n; (n = stack.pop()); stack.push(...n.children)) entries.set(n.entry.id, n.entry);
	while (id && !before.includes(JSON.stringify(id))) id = entries.get(id)?.parentId;
	return id ?? null;
}

async function one(file) {
	const dir = join(scratch, "run", file);
	rmSync(dir, { recursive: true, force: true });
	mkdirSync(join(dir, "sessions"), { recursive: true });
	const path = join(dir, "sessions", file);
	const before = readFileSync(join(corpus, file));
	writeFileSync(path, before);
	const child = spawn(node, ["--max-old-space-size=300", cli, "--mode", "rpc", "--no-themes", "--session", path], {
		cwd: dir, stdio: ["pipe", "pipe", "pipe"],
		env: { PATH: process.env.PATH, HOME: dir, PI_OFFLINE: "1", PI_CODING_AGENT_DIR: agentDir, PI_CODING_AGENT_SESSION_DIR: join(dir, "sessions") },
	});
	const r = {};
	let out = "", err = "";
	const asks = ["get_state", "get_messages", "get_session_stats", "get_tree"];
	child.stdout.setEncoding("utf8").on("data", (d) => {
		out += d;
		for (let i; (i = out.indexOf("\n")) >= 0; out = out.slice(i + 1)) {
			const m = JSON.parse(out.slice(0, i));
			if (m.type !== "response") continue;
			if (!m.success) (r.failed ??= {})[m.command] = m.error;
			else if (m.command === "get_state") {
				r.id = m.data.sessionId;
				r.model = m.data.model ? `${m.data.model.provider}/${m.data.model.id}` : "";
				r.thinking = m.data.thinkingLevel;
				r.name = m.data.sessionName ?? "";
			} else if (m.command === "get_messages") r.messages = m.data.messages.map(short);
			else if (m.command === "get_session_stats") {
				const { userMessages, assistantMessages, toolCalls, toolResults, totalMessages, tokens, cost } = m.data;
				r.stats = { userMessages, assistantMessages, toolCalls, toolResults, totalMessages, tokens, cost };
			} else if (m.command === "get_tree") {
				r.leaf = lastOfFile(m.data.tree, m.data.leafId, before);
				r.roots = m.data.tree.map((n) => n.entry.id ?? null);
			}
			if (m.id === "3") child.stdin.end();
		}
	});
	child.stderr.setEncoding("utf8").on("data", (d) => { err += d; });
	child.stdin.on("error", () => {});
	asks.forEach((type, i) => child.stdin.write(`${JSON.stringify({ id: String(i), type })}\n`));
	let timer;
	const status = await new Promise((done) => {
		timer = setTimeout(() => { r.gaveUp = true; child.kill("SIGKILL"); }, giveUpMs);
		child.on("close", (code, signal) => done(code ?? signal));
	});
	clearTimeout(timer);
	r.exit = r.gaveUp ? "gave up" : String(status);
	if (status !== 0) r.stderr = err.split("\n").find((l) => /Error|FATAL|not a valid|does not exist/.test(l))?.replaceAll(path, "FILE").slice(0, 160) ?? "";
	if (!readFileSync(path).subarray(0, before.length).equals(before)) r.rewritten = true;
	return r;
}

const only = process.env.ONLY?.split(",");
const files = readdirSync(corpus).filter((f) => f.endsWith(".jsonl") && (!only || only.includes(f))).sort();
const target = join(here, "pi-outcomes.json");
const results = only ? JSON.parse(readFileSync(target, "utf8")) : {};
const next = async () => {
	for (let f; (f = files.shift()); ) results[f] = await one(f);
};
await Promise.all([next(), next()]);
const sorted = Object.fromEntries(Object.keys(results).sort().map((k) => [k, results[k]]));
writeFileSync(target, `${JSON.stringify(sorted, null, "\t")}\n`);
