package engine

import (
	"slices"

	"patio/engine/demo"
	"patio/engine/pi"
)

// Models are the models that a session could use now, as --model takes them: the demo's,
// and those of the image's Pi whose provider has a key in the caller's environment. What
// models.json of the caller's own Pi adds isn't among them; it is taken all the same when
// it is named.
func (e *Engine) Models() ([]string, error) {
	p := planner{e: e}
	if err := p.image(); err != nil {
		return nil, err
	}
	var names []string
	for _, id := range demoModels() {
		names = append(names, demo.Provider+"/"+id)
	}
	for name, provider := range p.img.Manifest.Providers {
		if _, ok := pi.SelectCredential(name, provider.KeyEnv, func(env string) bool { return p.getenv(env) != "" }); !ok {
			continue
		}
		for _, m := range provider.Models {
			names = append(names, name+"/"+m.ID)
		}
	}
	slices.Sort(names[len(demoModels()):])
	return names, nil
}
