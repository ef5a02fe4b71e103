// WebSockets of Node's `ws`, as clients and as a server, told by lines of JSON what to do: see sockets.py.
import http from "node:http";
import readline from "node:readline";
import WebSocket, { WebSocketServer } from "ws";

const sockets = new Map();
const servers = new Map();
let next = 0;

const tell = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);

function watch(id, socket) {
  sockets.set(id, socket);
  socket.on("message", (data, isBinary) => tell({ event: "message", id, [isBinary ? "hex" : "text"]: data.toString(isBinary ? "hex" : "utf8") }));
  socket.on("ping", (data) => tell({ event: "ping", id, text: data.toString() }));
  socket.on("pong", (data) => tell({ event: "pong", id, text: data.toString() }));
  socket.on("close", (code, reason) => tell({ event: "close", id, code, reason: reason.toString() }));
  socket.on("error", (error) => tell({ event: "error", id, text: error.message }));
}

const orders = {
  connect({ id, url, protocols, ...options }) {
    const socket = new WebSocket(url, protocols ?? [], { perMessageDeflate: false, ...options });
    socket.on("unexpected-response", (request, answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => {
        tell({ event: "refused", id, status: answer.statusCode, headers: answer.headers, text: Buffer.concat(parts).toString() });
        request.destroy();
      });
    });
    socket.on("open", () => tell({ event: "open", id, protocol: socket.protocol, extensions: socket.extensions }));
    watch(id, socket);
  },
  // What comes of each connection has an id of its own, which the event says. `pages` are for requests that are no
  // handshakes: status, text and type by path.
  serve({ id, protocol, refuse, pages = {}, ...options }) {
    const web = http.createServer((request, answer) => {
      tell({ event: "asked", id, path: request.url, headers: request.headers });
      const [status, text, type] = pages[request.url] ?? [426, "", "text/plain"];
      answer.writeHead(status, { "content-type": type }).end(text);
    });
    const handleProtocols = (offered) => (protocol && offered.has(protocol) ? protocol : false);
    const verifyClient = (_, done) => (refuse ? done(false, refuse.status, refuse.text, refuse.headers) : done(true));
    const server = new WebSocketServer({ server: web, handleProtocols, verifyClient, ...options });
    servers.set(id, web);
    web.listen(0, "127.0.0.1", () => tell({ event: "listening", id, port: web.address().port }));
    server.on("connection", (socket, request) => {
      const own = `${id}/${next++}`;
      watch(own, socket);
      tell({ event: "connection", id, socket: own, path: request.url, headers: request.headers });
    });
  },
  send({ id, text, hex, fin = true }) {
    sockets.get(id).send(text ?? Buffer.from(hex, "hex"), { fin, binary: text === undefined });
  },
  ping: ({ id, text }) => sockets.get(id).ping(text),
  pong: ({ id, text }) => sockets.get(id).pong(text),
  pause: ({ id }) => sockets.get(id).pause(),
  resume: ({ id }) => sockets.get(id).resume(),
  close: ({ id, code, reason }) => sockets.get(id).close(code, reason),
  terminate: ({ id }) => sockets.get(id).terminate(),
  // Bytes on the line that no library would send.
  raw: ({ id, hex }) => sockets.get(id)._socket.write(Buffer.from(hex, "hex")),
  unserve: ({ id }) => servers.get(id).close(),
  async fetch({ id, url, ...options }) {
    const answer = await fetch(url, options);
    const text = await answer.text();
    tell({ event: "answer", id, status: answer.status, headers: Object.fromEntries(answer.headers), text });
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { order, ...more } = JSON.parse(line);
  const failed = (error) => tell({ event: "error", id: more.id, text: error.message });
  try {
    orders[order](more)?.catch?.(failed);
  } catch (error) {
    failed(error);
  }
}
process.exit(0);
