"""Random walks from a small corpus: what comes from outside is changed at random, and a check must hold each time.

A short walk is part of `make test`, always the same one: what it finds was broken by the change at hand. `make fuzz`
walks elsewhere each time, for minutes. A failure prints the seed and the step, and keeps the input in
`artefacts/fuzz/`. Once the cause is cured, the input goes into the corpus: it is tried first ever after.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bed.waiting import BUSY_FACTOR

CORPUS = Path(__file__).parent / "corpus"
FOUND = Path(__file__).parents[2] / "artefacts" / "fuzz"
IS_SHORT = "FUZZ_SECONDS" not in os.environ
WALK_SECONDS = float(os.environ.get("FUZZ_SECONDS", "1"))
"""For each walk; `make fuzz` sets more."""
SHORT_SEED, SHORT_STEPS = 1, 2000
"""A faster machine does not walk further than this one did."""
INPUT_SECONDS = 5.0 * BUSY_FACTOR
"""Of a processor, for one input: what takes longer is a finding too."""
MAX_INPUT_BYTES = 1 << 20
_MAX_CHANGES = 6
_ODD_BYTES = b"\x00\x01\x1f\x7f\x80\xff\n\r\t \"'\\/,:;[]{}()<>0-9"
_ODD_NUMBERS = (0, 1, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)

Check = Callable[[bytes], object]
"""Looks at one input. It fails by raising; the errors that the code under test promises are its own to catch."""


def corpus_of(name: str) -> list[bytes]:
    """The inputs that every walk of that name starts from."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def walk(name: str, check: Check, *, words: Sequence[bytes] = (), seconds: float = WALK_SECONDS) -> int:
    """Check the corpus, then random changes of it until the time is up; how many inputs were tried.

    `words` are what the format is made of: keywords and brackets that single bytes seldom hit.
    """
    seed = int(os.environ.get("FUZZ_SEED", "0")) or (SHORT_SEED if IS_SHORT else _new_seed())
    dice, known = random.Random(seed), corpus_of(name) or [b""]
    for step, data in enumerate(known):
        _checked(name, check, data, f"corpus file {step}")
    until, step = time.monotonic() + seconds, 0
    while time.monotonic() < until and not (IS_SHORT and step == SHORT_STEPS):
        step += 1
        data = changed(dice, dice.choice(known), known, words)
        _checked(name, check, data, f"FUZZ_SEED={seed}, step {step}")
    print(f"fuzz {name}: {len(known)} of the corpus, {step} changed, FUZZ_SEED={seed}")
    return len(known) + step


def _new_seed() -> int:
    return random.SystemRandom().randrange(1, 2**32)


def changed(dice: random.Random, data: bytes, known: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """A few random changes of one input."""
    for _ in range(dice.randint(1, _MAX_CHANGES)):
        data = dice.choice(_CHANGES)(dice, data, known, words)[:MAX_INPUT_BYTES]
    return data


def _checked(name: str, check: Check, data: bytes, which: str) -> None:
    began = time.process_time()
    try:
        check(data)
    except BaseException as exc:
        exc.add_note(f"fuzz {name}, {which}: input kept in {_kept(name, data)}, begins with {data[:200]!r}")
        raise
    took = time.process_time() - began
    assert took < INPUT_SECONDS, f"fuzz {name}, {which}: {took:.1f} s for the input in {_kept(name, data)}"


def _kept(name: str, data: bytes) -> Path:
    FOUND.mkdir(parents=True, exist_ok=True)
    path = FOUND / f"{name}-{hash(data) & 0xFFFFFFFF:08x}"
    path.write_bytes(data)
    return path


_Change = Callable[[random.Random, bytes, Sequence[bytes], Sequence[bytes]], bytes]


def _span(dice: random.Random, data: bytes) -> tuple[int, int]:
    start = dice.randint(0, len(data))
    return start, min(len(data), start + dice.choice((1, 2, 4, 8, 64, 1024)))


def _cut_out(dice: random.Random, data: bytes, _known: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    start, end = _span(dice, data)
    return data[:start] + data[end:]


def _cut_off(dice: random.Random, data: bytes, _known: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    return data[: dice.randint(0, len(data))]


def _repeated(dice: random.Random, data: bytes, _known: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    start, end = _span(dice, data)
    return data[:start] + data[start:end] * dice.choice((2, 3, 100, 5000)) + data[end:]


def _odd_byte(dice: random.Random, data: bytes, _known: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    start, _ = _span(dice, data)
    return data[:start] + bytes((dice.choice(_ODD_BYTES),)) + data[start + dice.randint(0, 1) :]


def _flipped_bit(dice: random.Random, data: bytes, _known: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    if not data:
        return data
    place = dice.randrange(len(data))
    return data[:place] + bytes((data[place] ^ (1 << dice.randrange(8)),)) + data[place + 1 :]


def _word(dice: random.Random, data: bytes, _known: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    start, end = _span(dice, data)
    word = dice.choice(words) if words else str(dice.choice(_ODD_NUMBERS)).encode()
    return data[:start] + word + data[dice.choice((start, end)) :]


def _number(dice: random.Random, data: bytes, _known: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    start, _ = _span(dice, data)
    size = dice.choice((1, 2, 4, 8))
    number = (dice.choice(_ODD_NUMBERS) % (1 << (8 * size))).to_bytes(size, dice.choice(("little", "big")))
    return data[:start] + number + data[start + size :]


def _spliced(dice: random.Random, data: bytes, known: Sequence[bytes], _words: Sequence[bytes]) -> bytes:
    other = dice.choice(known)
    return data[: dice.randint(0, len(data))] + other[dice.randint(0, len(other)) :]


_CHANGES: tuple[_Change, ...] = (
    _cut_out,
    _cut_off,
    _repeated,
    _odd_byte,
    _flipped_bit,
    _word,
    _number,
    _spliced,
)
