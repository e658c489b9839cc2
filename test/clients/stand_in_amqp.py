#!/usr/bin/env python3
"""stand_in_amqp.py <port>: a broker of AMQP 0-9-1 on loopback, until it is ended.

It knows queues, which are declared, published to by the default exchange, and consumed from; any
client may log in. It has no persistence, no acknowledgements and no errors: what it does not know
ends the connection.
"""

import asyncio
import collections
import struct
import sys

METHOD, HEADER, BODY, END = 1, 2, 3, b"\xce"
BODY_BYTES = 100_000

# (class, method) of what is answered, and the answer's payload after its own (class, method + 1).
ANSWERS = {
    (10, 40): b"\0",             # connection.open
    (20, 10): b"\0\0\0\0",       # channel.open
    (20, 40): b"",               # channel.close
    (10, 50): b"",               # connection.close
}
UNANSWERED = {(10, 11), (10, 31), (20, 41), (60, 80)}  # start-ok, tune-ok, close-ok, ack


class Queue:
    def __init__(self):
        self.messages = collections.deque()
        self.consumers = collections.deque()

    def deliver(self):
        while self.messages and self.consumers:
            self.consumers[0].deliver(*self.messages.popleft())
            self.consumers.rotate()


QUEUES = collections.defaultdict(Queue)


def short_string(payload, at):
    """The one at `at`, and where what follows begins."""
    end = at + 1 + payload[at]
    return payload[at + 1:end], end


def long_string(text):
    return struct.pack(">I", len(text)) + text


def prefixed(text):
    return bytes([len(text)]) + text


class Consumer:
    def __init__(self, connection, channel, tag):
        self.connection, self.channel, self.tag, self.count = connection, channel, tag, 0

    def deliver(self, key, header, body):
        self.count += 1
        self.connection.method(self.channel, 60, 60, prefixed(self.tag) +
                               struct.pack(">QB", self.count, 0) + b"\0" + prefixed(key))
        self.connection.frame(HEADER, self.channel, header)
        for at in range(0, len(body), BODY_BYTES):
            self.connection.frame(BODY, self.channel, body[at:at + BODY_BYTES])


class Connection:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def frame(self, kind, channel, payload):
        self.writer.write(struct.pack(">BHI", kind, channel, len(payload)) + payload + END)

    def method(self, channel, of_class, number, arguments):
        self.frame(METHOD, channel, struct.pack(">HH", of_class, number) + arguments)

    async def read(self):
        kind, channel, count = struct.unpack(">BHI", await self.reader.readexactly(7))
        payload = await self.reader.readexactly(count + 1)
        if payload[-1:] != END:
            raise ValueError("a frame without an end")
        return kind, channel, payload[:-1]

    async def serve(self):
        if await self.reader.readexactly(8) != b"AMQP\0\0\x09\x01":
            raise ValueError("another protocol")
        self.method(0, 10, 10, b"\0\x09" + long_string(b"") + long_string(b"PLAIN") +
                    long_string(b"en_US"))
        is_open = True
        while is_open:
            _, channel, payload = await self.read()
            which = struct.unpack(">HH", payload[:4])
            if which == (10, 11):
                self.method(0, 10, 30, struct.pack(">HIH", 2047, BODY_BYTES + 8, 0))
            elif which in ANSWERS:
                self.method(channel, which[0], which[1] + 1, ANSWERS[which])
                is_open = which != (10, 50)
            elif which == (50, 10):
                name, _ = short_string(payload, 6)
                messages = len(QUEUES[name].messages)
                self.method(channel, 50, 11, prefixed(name) + struct.pack(">II", messages, 0))
            elif which == (60, 20):
                self.consume(channel, payload)
            elif which == (60, 40):
                await self.publish(payload)
            elif which not in UNANSWERED:
                raise ValueError(f"a method {which} that is not known")
            await self.writer.drain()

    def consume(self, channel, payload):
        name, at = short_string(payload, 6)
        tag, _ = short_string(payload, at)
        self.method(channel, 60, 21, prefixed(tag))
        QUEUES[name].consumers.append(Consumer(self, channel, tag))
        QUEUES[name].deliver()

    async def publish(self, payload):
        _, at = short_string(payload, 6)
        key, _ = short_string(payload, at)
        _, _, header = await self.read()
        size, = struct.unpack(">Q", header[4:12])
        body = b""
        while len(body) < size:
            body += (await self.read())[2]
        QUEUES[key].messages.append((key, header, body))
        QUEUES[key].deliver()

    def leave(self):
        for queue in QUEUES.values():
            queue.consumers = collections.deque(c for c in queue.consumers if c.connection != self)


async def serve(reader, writer):
    connection = Connection(reader, writer)
    try:
        await connection.serve()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        connection.leave()
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=1000)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
