"""One task of many raises: the driver asks for all results and ends with that exception."""

from __future__ import annotations

import ray  # type: ignore[import-not-found, unused-ignore]  # the bed's environment has it, ours does not


def words_per_sentence(page: int) -> float:
    words, sentences = 300 + page, 0 if page == 17 else 12
    print(f"page {page}: {words} words in {sentences} sentences", flush=True)
    return words / sentences


def main() -> None:
    ray.init(log_to_driver=False)
    results = [ray.remote(num_cpus=0.5)(words_per_sentence).remote(page) for page in range(40)]
    ray.wait(results, num_returns=len(results))
    print(f"mean: {sum(ray.get(results)) / len(results)}")


if __name__ == "__main__":
    main()
