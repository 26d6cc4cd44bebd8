"""A stand-in for the daemon in a process of its own, which ends of some inputs: `python mortal.py ADDRESS RECORD SIZE...`. It ends
when an input of one of the sizes comes. Every input's size is a line of the file RECORD, with `alone` if no other was in flight."""

import http.server
import os
import signal
import sys
import threading

from stand_in import StandIn


class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    address, record, deadly = sys.argv[1], sys.argv[2], {int(size) for size in sys.argv[3:]}
    lock = threading.Lock()

    def plan(content, attempt):
        with lock, open(record, "a", encoding="ascii") as file:
            file.write(f"{len(content)}{' alone' if stand_in.at_once == 1 else ''}\n")
            file.flush()
            if len(content) in deadly:
                os._exit(1)

    with StandIn(address) as stand_in:
        stand_in.plan = plan
        web = http.server.HTTPServer(("127.0.0.1", 0), Ready)
        threading.Thread(target=web.serve_forever, daemon=True).start()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        print(f"listening grpc={stand_in.address} http=127.0.0.1:{web.server_port}", flush=True)
        signal.sigwait([signal.SIGTERM])


if __name__ == "__main__":
    main()
