#!/usr/bin/env bash
# A PostgreSQL server for the tests, from Debian's packages, on loopback, in a folder of its own:
#   export ERRCOMP_TEST_POSTGRES="$(tests/halflife/postgres.sh start FOLDER)"
#   tests/halflife/postgres.sh stop FOLDER
# FOLDER must not exist yet; stop removes it. The server is PostgreSQL's own user's if we are root.
set -euo pipefail

action="${1:?start or stop}"
folder="${2:?a folder}"
bin="$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)"
if [ -z "$bin" ]; then
    echo "there is no PostgreSQL server: apt-get install postgresql" >&2
    exit 1
fi

as_owner() {
    if [ "$(id -u)" -eq 0 ]; then
        runuser -u postgres -- env -C "$folder" LC_ALL=C.UTF-8 "$@"
    else
        env -C "$folder" LC_ALL=C.UTF-8 "$@"
    fi
}

case "$action" in
start)
    mkdir -p "$folder"
    folder="$(cd "$folder" && pwd)"
    if [ "$(id -u)" -eq 0 ]; then chown postgres "$folder"; fi
    password="$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
    printf '%s' "$password" | as_owner tee "$folder/password" >/dev/null
    as_owner "$bin/initdb" -D "$folder/data" -U errcomp --encoding=UTF8 --locale=C.UTF-8 \
        --auth=scram-sha-256 --pwfile="$folder/password" >"$folder/initdb.log"
    # Tests kill writers, not the server: it need not wait for the disk.
    for port in $(shuf -i 20000-60000 -n 5); do
        if as_owner "$bin/pg_ctl" -D "$folder/data" -l "$folder/log" -w -t 60 \
            -o "-h 127.0.0.1 -p $port -c unix_socket_directories= -c fsync=off" start >/dev/null; then
            echo "postgresql://errcomp:$password@127.0.0.1:$port/postgres"
            exit 0
        fi
    done
    cat "$folder/log" >&2
    exit 1
    ;;
stop)
    folder="$(cd "$folder" && pwd)"
    as_owner "$bin/pg_ctl" -D "$folder/data" -m immediate -w stop >/dev/null
    rm -rf "$folder"
    ;;
*)
    echo "usage: $0 start|stop FOLDER" >&2
    exit 2
    ;;
esac
