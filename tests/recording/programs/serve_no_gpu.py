"""Ray Serve: a deployment asks for a GPU that no node has, and `serve.run` waits."""

from ray import serve


@serve.deployment(ray_actor_options={"num_gpus": 1})
class Embedder:
    def __call__(self):
        return "ok"


serve.start(http_options={"port": 18765})
serve.run(Embedder.bind(), name="embeddings")
