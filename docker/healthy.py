"""Whether Ray, or the server, answers on this node: exit code 0 or 1, for health checks.

python healthy.py raylet   the node is part of a cluster that is there
python healthy.py head     and it is the head, whose jobs server takes jobs
python healthy.py serve    hpo serve answers
"""

import sys
import urllib.request

PLACES = {
    # Each answers without a token.
    "raylet": ("http://127.0.0.1:52365/api/local_raylet_healthz", "success"),
    "head": ("http://127.0.0.1:8265/api/gcs_healthz", "success"),
    "serve": ("http://127.0.0.1:8900/healthz", "ok"),
}


def main(names: list[str]) -> int:
    """Asks each place; 5 s may pass at each."""
    for name in names:
        place, well = PLACES[name]
        try:
            with urllib.request.urlopen(place, timeout=5) as answer:
                said = answer.read().decode().strip()
        except OSError as error:
            sys.stderr.write(f"{name}: {error}\n")
            return 1
        if said != well:
            sys.stderr.write(f"{name}: {said}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["raylet"]))
