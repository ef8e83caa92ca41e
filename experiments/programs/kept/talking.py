"""Work of a fixed size that prints a line for each piece of it, and at its end the seconds that it took."""

import argparse
import time


def work(turns: int) -> int:
    value = 1
    for _ in range(turns):
        value = value * 48271 % 2147483647
    return value


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=1000, help="of the work of each line")
    parser.add_argument("--epochs", type=int, default=1)
    args = parser.parse_args()
    began = time.perf_counter()
    for number in range(args.lines):
        print(f"step {number} loss {work(args.turns) / 2147483647:.6f}")
    print(f"elapsed={time.perf_counter() - began:.6f}")


if __name__ == "__main__":
    main()
