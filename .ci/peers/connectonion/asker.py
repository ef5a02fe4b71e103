"""One prompt, to the agent at a URL: asker.py PORT URL PROMPT. Who listens at this port has users who ask it."""

import json
import socket
import sys

port, url, prompt = sys.argv[1:]
with socket.create_connection(("127.0.0.1", int(port))) as line, line.makefile("rw") as file:
    file.write(json.dumps({"url": url, "prompt": prompt}) + "\n")
    file.flush()
    answer = json.loads(file.readline())
print(answer.get("text", answer), flush=True)
sys.exit("text" not in answer)
