#!/usr/bin/env bash
# Healthy while HAProxy sees at least one redirect process. bash opens the connection itself; the image has no client.
set -euo pipefail
exec 3<>/dev/tcp/127.0.0.1/9090
printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
read -r -t 2 _ status _ <&3
[[ "${status}" == "200" ]]
