"""A bare client that sends request bodies from a file all at once and keeps only the text of replies.

    python -m bench.speed.bare_client FILE URL [--concurrency 256]

It measures the cost of an engine that renders no prompts, does not retry, and reads no probabilities. It prints one
JSON
object: wall and CPU seconds, peak MB, and the number of replies that contain a JSON object.
"""

import asyncio
import json
from pathlib import Path

import aiohttp
import msgspec

from bench import common


class _Message(msgspec.Struct):
    content: str


class _Choice(msgspec.Struct):
    message: _Message


class _Answer(msgspec.Struct):
    choices: list[_Choice]


async def send(bodies: list[bytes], url: str, concurrency: int) -> int:
    """Post all bodies; returns the number of replies with a JSON object."""
    decoder = msgspec.json.Decoder(_Answer)
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, headers={"Content-Type": "application/json"}) as session:

        async def one(body: bytes) -> bool:
            async with session.post(f"{url}/v1/chat/completions", data=body) as reply:
                text = decoder.decode(await reply.read()).choices[0].message.content
            return isinstance(json.loads(text), dict)

        return sum(await asyncio.gather(*map(one, bodies)))


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("url")
    parser.add_argument("--concurrency", type=int, default=256)
    args = parser.parse_args()
    bodies = args.file.read_bytes().splitlines()
    good: list[int] = []
    found = common.measured("bare", lambda: good.append(asyncio.run(send(bodies, args.url, args.concurrency))))
    print(json.dumps({**found, "replies": good[0]}))


if __name__ == "__main__":
    main()
