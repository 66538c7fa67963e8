# Owns the servers of one control plane, so that they end with the test process, however that one ends.
#
# A Rust test process cannot clean up after itself: statics are never dropped, and nothing at all runs after a SIGKILL.
# What the kernel does in every case is to close the process' end of a pipe. This shell reads commands from that pipe
# and is the parent of the servers; at the end of input it kills them by the ids of its own children and removes the
# folder that it made. It runs in a process group of its own, so a Ctrl-C at the terminal reaches the tests and not it.
#
# Its first output line is the folder. Then each input line "start NAME", "stop NAME" or "alive NAME" is answered by
# one line. A server NAME is what the script NAME.sh in the folder executes.
set -u
umask 077
dir=$(mktemp -d "${TMPDIR:-/tmp}/gantry-testbed.XXXXXX") && cd "$dir" || exit 1

alive() {
    jobs >/dev/null # lets the shell take note of children that ended
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
trap '' PIPE # the reader of the answers may be gone before the end of input is seen

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
