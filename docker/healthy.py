"""Whether Ray answers on this node: exit code 0 or 1, for health checks.

python healthy.py raylet   the node is part of a cluster that is there
python healthy.py head     and it is the head, whose jobs server takes jobs
"""

import sys
import urllib.request

PLACES = {
    # Ray's own; both answer without a token.
    "raylet": "http://127.0.0.1:52365/api/local_raylet_healthz",
    "head": "http://127.0.0.1:8265/api/gcs_healthz",
}


def main(names: list[str]) -> int:
    """Asks each place; 5 s may pass at each."""
    for name in names:
        try:
            with urllib.request.urlopen(PLACES[name], timeout=5) as answer:
                said = answer.read().decode()
        except OSError as error:
            sys.stderr.write(f"{name}: {error}\n")
            return 1
        if said != "success":
            sys.stderr.write(f"{name}: {said}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["raylet"]))
