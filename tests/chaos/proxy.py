# SPDX-License-Identifier: Apache-2.0
"""Links between parts that can be troubled: a process that forwards TCP connections.

Told by lines of JSON on standard input, each answered by one line:

    {"link": NAME, "port": 0, "upstream": PORT}   a new link; the answer has its port
    {"link": NAME, "mode": MODE, "value": X}      its connections, old and new ones:

    ok      are forwarded
    refuse  are reset at once
    freeze  stand still, and go on with every byte afterwards: a network that is gone
    mute    bring what the client says, and swallow the answers; reset afterwards
    delay   bring every chunk X seconds late
    lose    are reset with probability X at each chunk
"""

import asyncio
import json
import random
import socket
import struct
import sys

CHUNK_BYTES = 1 << 16


class Link:
    def __init__(self, upstream):
        self.upstream = upstream
        self.mode, self.value = "ok", 0.0
        self.thawed = asyncio.Event()
        self.thawed.set()
        self.open = set()

    def set(self, mode, value):
        was = self.mode
        self.mode, self.value = mode, value
        self.thawed.clear() if mode == "freeze" else self.thawed.set()
        # Bytes were swallowed, so that these connections cannot go on.
        if mode == "refuse" or was == "mute":
            for writer in list(self.open):
                reset(writer)

    async def accept(self, reader, writer):
        self.open.add(writer)
        other = None
        try:
            await self.thawed.wait()
            if self.mode == "refuse":
                return
            from_server, other = await asyncio.open_connection("127.0.0.1", self.upstream)
            self.open.add(other)
            ways = [asyncio.ensure_future(self.forward(reader, other, False)),
                    asyncio.ensure_future(self.forward(from_server, writer, True))]  # fmt: skip
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
        except OSError:
            pass
        finally:
            for end in filter(None, (writer, other)):
                self.open.discard(end)
                reset(end)

    async def forward(self, reader, writer, is_answer):
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                if self.mode == "delay":
                    await asyncio.sleep(self.value)
                await self.thawed.wait()
                if self.mode == "mute" and is_answer:
                    continue
                if self.mode == "lose" and random.random() < self.value:
                    return
                writer.write(chunk)
                await writer.drain()
        except (OSError, RuntimeError):
            pass


def reset(writer):
    """Closes with a reset, as a connection ends whose other side has gone."""
    try:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    writer.transport.abort()


async def serve():
    links = {}
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)  # fmt: skip
    while line := await lines.readline():
        order = json.loads(line)
        answer = {}
        if "upstream" in order:
            link = links[order["link"]] = Link(order["upstream"])
            server = await asyncio.start_server(link.accept, "127.0.0.1", order["port"])
            answer["port"] = server.sockets[0].getsockname()[1]
        else:
            links[order["link"]].set(order["mode"], order.get("value", 0.0))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(serve())
