"""An engine like those of language models: a process of its own loads the model, and dies of it."""

import multiprocessing
import sys
import traceback

import ray


def load_weights(layers):
    if layers > 32:
        raise ValueError(f"checkpoint has {layers} layers, the configuration says 32")


def run_core(layers):
    try:
        load_weights(layers)
    except Exception:
        print(f"EngineCore failed to start.\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        sys.exit(1)


@ray.remote
class Engine:
    def __init__(self, layers):
        core = multiprocessing.get_context("fork").Process(target=run_core, args=(layers,))
        core.start()
        core.join()
        if core.exitcode:
            raise RuntimeError("Engine core initialization failed. See root cause above.")

    def generate(self, prompt):
        return prompt[::-1]


ray.init()
engine = Engine.options(name="llm-0").remote(40)
print(ray.get(engine.generate.remote("hello")))
