#!/usr/bin/env python3
"""stand_in_http.py <port>: HTTP on loopback, as slow as it is asked to be, until it is ended.

GET /wait/<ms>/<text> is answered by <text> after that many milliseconds; GET /never is not answered.
"""

import asyncio
import sys


async def serve(reader, writer):
    try:
        request = await reader.readuntil(b"\r\n\r\n")
        path = request.split(b" ", 2)[1].decode().split("/")
        if path[1] == "never":
            await reader.read()
        else:
            await asyncio.sleep(int(path[2]) / 1000)
            body = path[3].encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                         b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=1000)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
