#!/bin/sh
# Installs what Warmband needs (`packages`), or Warmband itself without it (`warmband`), from the folder above this one.
# Two steps, so that a change of the code leaves the image's large layer alone.
set -eu
cd "$(dirname "$0")/.."

case "${1:-}" in
  packages)
    python - > /tmp/requirements.txt <<'PYTHON'
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
print(*project["dependencies"], *project["optional-dependencies"]["serve"], sep="\n")
PYTHON
    python -m pip install --no-cache-dir --constraint constraints.txt --requirement /tmp/requirements.txt
    rm /tmp/requirements.txt
    ;;
  warmband)
    python -m pip install --no-cache-dir --no-deps .
    rm -rf build warmband.egg-info # What the installation leaves here.
    ;;
  *)
    echo "usage: install.sh packages|warmband" >&2
    exit 2
    ;;
esac
