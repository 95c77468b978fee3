"""A small server of live video, as somebody might write one: each picture goes out when it is due, by TCP.

python3 server.py ADDRESS PORT
"""

import socket
import sys
import time

PICTURES_PER_S = 25
PICTURE_BYTES = 2500
PACE = 1.0  # of real time; below 1 pictures are late, and later all the time


def main() -> None:
    with socket.create_server((sys.argv[1], int(sys.argv[2]))) as listening:
        connection, _ = listening.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = time.monotonic()
        picture = 0
        while True:
            due = began + picture / (PICTURES_PER_S * PACE)
            time.sleep(max(0.0, due - time.monotonic()))
            connection.sendall(bytes(PICTURE_BYTES))
            picture += 1


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, ConnectionError):
        pass
