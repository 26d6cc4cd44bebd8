"""A name server for a single name, like a cluster's for a headless Service."""

import socket
import struct
import threading

NAME = "saccade.rollout"
A, IN = 1, 1


class NameServer:
    """Answers on UDP until it is closed. Use it as a context manager."""

    def __init__(self, address):
        self._addresses = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, 0))
        self.at = f"{address}:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A datagram that is too short for a question ends the loop.
        self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def tell(self, addresses):
        self._addresses = list(addresses)

    def _serve(self):
        while True:
            question, sender = self._socket.recvfrom(4096)
            if not question:
                return
            if len(question) >= 12:
                self._socket.sendto(self._answer(question), sender)

    def _answer(self, question):
        end = question.index(b"\0", 12) + 5
        name, kind = question[12 : end - 4], struct.unpack(">H", question[end - 4 : end - 2])[0]
        wanted = b"".join(bytes([len(part)]) + part for part in NAME.encode().split(b".")) + b"\0"
        known = name.lower() == wanted
        found = self._addresses if known and kind == A else []
        head = question[:2] + struct.pack(">HHHHH", 0x8580 if known else 0x8583, 1, len(found), 0, 0)
        records = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", A, IN, 0, 4) + socket.inet_aton(one) for one in found)
        return head + question[12:end] + records
