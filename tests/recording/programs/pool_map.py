"""Ray's own Pool maps a function over lines, and one of them is not what it should be."""

from ray.util.multiprocessing import Pool


def amount(line):
    name, value = line.split("=")
    return int(value)


if __name__ == "__main__":
    lines = [f"row={n}" for n in range(30)]
    lines[17] = "row 17"
    with Pool(2) as pool:
        print(sum(pool.map(amount, lines)))
