"""Ray Serve without HTTP: the driver asks a deployment by its handle, and gets what that raised."""

from ray import serve


@serve.deployment(ray_actor_options={"num_cpus": 0.3})
class Ranker:
    def rank(self, items):
        weights = {"a": 3, "b": 1}
        return sorted(items, key=lambda item: weights[item])


serve.start(http_options={"port": 18765})
handle = serve.run(Ranker.bind(), name="ranking")
print(handle.rank.remote(["a", "b"]).result())
print(handle.rank.remote(["a", "c"]).result())
serve.shutdown()
