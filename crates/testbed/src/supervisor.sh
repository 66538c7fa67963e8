# Owns the servers of one control plane, so that they stop when the test process ends for any reason.
#
# A Rust test process cannot clean up after itself: statics are never dropped, and nothing runs after a SIGKILL. But the
# kernel always closes the process' end of a pipe. This shell reads commands from that pipe and is the parent of the
# servers; at the end of input it kills its children by process ID and removes the folder that it created. It runs in a
# process group of its own, so Ctrl-C in the terminal reaches the tests but not this shell.
#
# The first output line is the folder. Then each input line "start NAME", "stop NAME" or "alive NAME" is answered with
# one line. The server NAME is started by the script NAME.sh in the folder.
set -u
umask 077
dir=$(mktemp -d "${TMPDIR:-/tmp}/gantry-testbed.XXXXXX") && cd "$dir" || exit 1

alive() {
    jobs >/dev/null # makes the shell notice children that have ended
    [ -f "$1.pid" ] && kill -0 "$(cat "$1.pid")"
}

stop() {
    if alive "$1"; then
        kill -9 "$(cat "$1.pid")"
        wait "$(cat "$1.pid")"
    fi
    rm -f "$1.pid"
}

clean_up() {
    for server in *.pid; do
        [ ! -f "$server" ] || stop "${server%.pid}"
    done
    cd / && rm -rf "$dir"
}

trap clean_up EXIT
trap 'exit 1' HUP INT TERM
trap '' PIPE # the reader of the answers can be gone before this shell sees the end of input

echo "$dir"
while read -r command server; do
    case $command in
    start)
        sh "./$server.sh" </dev/null >>"$server.log" 2>&1 &
        echo $! >"$server.pid"
        echo started
        ;;
    stop)
        stop "$server"
        echo stopped
        ;;
    alive)
        if alive "$server"; then echo yes; else echo no; fi
        ;;
    esac
done
