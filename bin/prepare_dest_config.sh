#!/usr/bin/env bash
# Prepares this VM as the destination of the link: checks setenv.sh, writes prepared/ and .env, prints the ports to open and the next steps.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec "${PYTHON:-python3}" -I bin/environment.py requirements-prepare.lock deploy.prepare destination "$@"
