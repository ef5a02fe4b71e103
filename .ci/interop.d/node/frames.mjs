// What a client may say that is no frame, or no good one: the texts, and what they come to.

const deep = (levels) => "[".repeat(levels) + "]".repeat(levels);
const registration = (payload) => `{"type":"registration","payload":${payload}}`;
const response = (payload) => `{"type":"response","payload":${payload}}`;

/** Ignored, whoever sends them. */
export const JUNK = {
  "an empty text": "",
  "a blank text": " \n\t ",
  "no JSON": "hello",
  "half of an object": '{"type":"registration"',
  "an object with more behind": '{"type":"registration","payload":{"name":"a","description":"d"}} x',
  "two objects": "{}{}",
  "a comma too many": '{"type":"registration","payload":7,}',
  "single quotes": "{'type':'registration','payload':7}",
  "names without quotes": "{type:7}",
  "a comment": '{"type":"registration"/* */,"payload":7}',
  "NaN": '{"type":"registration","payload":NaN}',
  "Infinity": '{"type":"registration","payload":-Infinity}',
  "a number with a plus": '{"type":"registration","payload":+1}',
  "a number with a leading zero": '{"type":"registration","payload":01}',
  "a raw line break in a text": '{"type":"registration","payload":"a\nb"}',
  "a raw NUL in a text": '{"type":"registration","payload":"a\u0000b"}',
  "a wrong escape": String.raw`{"type":"registration","payload":"\x41"}`,
  "half an escape": String.raw`{"type":"registration","payload":"\u12"}`,
  "a byte order mark": '\ufeff{"type":"registration","payload":7}',
  "null": "null",
  "true": "true",
  "a number": "42",
  "a huge number": "1e999999",
  "a text as JSON": '"registration"',
  "an array": '["registration",{}]',
  "an array with a frame": `[${registration('{"name":"a","description":"d"}')}]`,
  "an empty object": "{}",
  "no type": '{"payload":{"name":"a","description":"d"}}',
  "no payload": '{"type":"registration"}',
  "a type of null": '{"type":null,"payload":{}}',
  "a type of 7": '{"type":7,"payload":{}}',
  "a type that is an object": '{"type":{"type":"registration"},"payload":{}}',
  "a type that is an array": '{"type":["registration"],"payload":{}}',
  "an empty type": '{"type":"","payload":{}}',
  "an unknown type": '{"type":"unregister","payload":{}}',
  "a type in capitals": '{"type":"REGISTRATION","payload":{"name":"a","description":"d"}}',
  "a type with a space": '{"type":"registration ","payload":{"name":"a","description":"d"}}',
  "a member in capitals": '{"Type":"registration","payload":{"name":"a","description":"d"}}',
  "a type of the server": '{"type":"registration_response","payload":{"success":true}}',
  "a message to the server": '{"type":"message","payload":{"id":"m","text":"x","timestamp":"t","metadata":{}}}',
  "a ping as JSON": '{"type":"ping","payload":{}}',
  "__proto__": '{"__proto__":{"type":"registration"},"payload":{}}',
  "the type twice": '{"type":"later","type":"registration","payload":{}}',
  "the payload twice": '{"type":"registration","payload":7,"payload":{"name":"a","description":"d"}}',
  "arrays 1,000 deep": `{"type":"later","payload":${deep(1000)}}`,
  "arrays 100,000 deep": `{"type":"later","payload":${deep(100_000)}}`,
  "arrays that are never closed": "[".repeat(100_000),
  "objects that are never closed": '{"a":'.repeat(100_000),
  "50,000 members": `{${Array.from({ length: 50_000 }, (_, at) => `"m${at}":0`).join(",")}}`,
  "a text of a megabyte": `{"type":"later","payload":"${"x".repeat(1_000_000)}"}`,
  "a type of a megabyte": `{"type":"${"x".repeat(1_000_000)}","payload":{}}`,
};

/** Ignored: responses that are none, or to nothing. */
export const RESPONSES = {
  "a payload of null": response("null"),
  "a payload of 7": response("7"),
  "a payload that is text": response('"ack"'),
  "a payload that is an array": response('["m","ack"]'),
  "an empty payload": response("{}"),
  "no id": response('{"type":"ack","payload":{}}'),
  "an id of null": response('{"messageId":null,"type":"ack","payload":{}}'),
  "an id that is an object": response('{"messageId":{},"type":"ack","payload":{}}'),
  "no type": response('{"messageId":"m","payload":{}}'),
  "a type of 7": response('{"messageId":"m","type":7,"payload":{}}'),
  "an unknown type": response('{"messageId":"m","type":"later","payload":{}}'),
  "an ack to nothing": response('{"messageId":"msg-nothing","type":"ack","payload":{}}'),
  "an ack to an empty id": response('{"messageId":"","type":"ack","payload":{}}'),
  "an ack to an id of a megabyte": response(`{"messageId":"${"m".repeat(1_000_000)}","type":"ack","payload":{}}`),
  "a reject to nothing": response('{"messageId":"msg-nothing","type":"reject","payload":{"reason":"no"}}'),
  "a notification to nothing": response('{"messageId":"msg-nothing","type":"notification","payload":{"body":"x"}}'),
  "half a surrogate as id": response(String.raw`{"messageId":"\ud800","type":"ack","payload":{}}`),
};

/** Each leaves the message open: `ID` is its id. */
export const NO_ANSWERS = {
  "a reject without a payload": response('{"messageId":"ID","type":"reject"}'),
  "a reject with null": response('{"messageId":"ID","type":"reject","payload":null}'),
  "a reject with an array": response('{"messageId":"ID","type":"reject","payload":["no"]}'),
  "a reject with text": response('{"messageId":"ID","type":"reject","payload":"no"}'),
  "a reject with a number as reason": response('{"messageId":"ID","type":"reject","payload":{"reason":7}}'),
  "a reject with an object as reason": response('{"messageId":"ID","type":"reject","payload":{"reason":{}}}'),
  "a notification without a payload": response('{"messageId":"ID","type":"notification"}'),
  "a notification with null": response('{"messageId":"ID","type":"notification","payload":null}'),
  "a notification with a number as title": response('{"messageId":"ID","type":"notification","payload":{"title":7}}'),
  "a notification with an array as body": response('{"messageId":"ID","type":"notification","payload":{"body":["x"]}}'),
  "a notification that is urgent": response('{"messageId":"ID","type":"notification","payload":{"priority":"urgent"}}'),
  "a notification of priority 1": response('{"messageId":"ID","type":"notification","payload":{"priority":1}}'),
  "an answer in capitals": response('{"messageId":"ID","type":"ACK","payload":{}}'),
  "an id in capitals": response('{"messageId":"IDX","type":"ack","payload":{}}'),
  "an id with a space": response('{"messageId":"ID ","type":"ack","payload":{}}'),
  "an answer on the level above": '{"type":"ack","payload":{"messageId":"ID"}}',
};

/** Each takes the message: `ID` is its id. */
export const ANSWERS = {
  "an ack": response('{"messageId":"ID","type":"ack","payload":{}}'),
  "an ack without a payload": response('{"messageId":"ID","type":"ack"}'),
  "an ack with null": response('{"messageId":"ID","type":"ack","payload":null}'),
  "an ack with an array": response('{"messageId":"ID","type":"ack","payload":[]}'),
  "an ack with more": response('{"messageId":"ID","type":"ack","payload":{"done":true}}'),
  "an ack in another order": '{"payload":{"payload":{},"type":"ack","messageId":"ID"},"type":"response"}',
  "an ack with unknown members": response('{"messageId":"ID","type":"ack","payload":{},"x":[1]}'),
  "an escaped ack": String.raw`{"typ\u0065":"response","payload":{"messageId":"ID","type":"\u0061ck"}}`,
  "a notification": response('{"messageId":"ID","type":"notification","payload":{"body":"x"}}'),
  "a blank notification": response('{"messageId":"ID","type":"notification","payload":{}}'),
  "a notification with nulls": response('{"messageId":"ID","type":"notification","payload":{"title":null,"body":"x"}}'),
};

const NAME = "INVALID_NAME";
const DESCRIPTION = "INVALID_DESCRIPTION";
const OTHER = "VALIDATION_ERROR";
const good = '"name":"a","description":"d"';

/** Payloads of registrations, and the code of the refusal. */
export const REFUSED = {
  "null": ["null", OTHER],
  "a number": ["7", OTHER],
  "text": ['"a"', OTHER],
  "true": ["true", OTHER],
  "an array": ["[]", NAME],
  "an array with a registration": [`[{${good}}]`, NAME],
  "an empty object": ["{}", NAME],
  "no name": ['{"description":"d"}', NAME],
  "a name of null": ['{"name":null,"description":"d"}', NAME],
  "a name of 7": ['{"name":7,"description":"d"}', NAME],
  "a name that is an array": ['{"name":["a"],"description":"d"}', NAME],
  "an empty name": ['{"name":"","description":"d"}', NAME],
  "a blank name": ['{"name":" \\t","description":"d"}', NAME],
  "a name that begins with a digit": ['{"name":"1a","description":"d"}', NAME],
  "a name that begins with a hyphen": ['{"name":"-a","description":"d"}', NAME],
  "a name with a space": ['{"name":"a b","description":"d"}', NAME],
  "a name with a space before": ['{"name":" a","description":"d"}', NAME],
  "a name with a line break behind": ['{"name":"a\\n","description":"d"}', NAME],
  "a name with an accent": ['{"name":"é","description":"d"}', NAME],
  "a name with the Kelvin sign": ['{"name":"a\\u212a","description":"d"}', NAME],
  "a name with a face": ['{"name":"a😀","description":"d"}', NAME],
  "a name with a NUL": ['{"name":"a\\u0000","description":"d"}', NAME],
  "a name of 65 letters": [`{"name":"${"a".repeat(65)}","description":"d"}`, NAME],
  "a name of a megabyte": [`{"name":"${"a".repeat(1_000_000)}","description":"d"}`, NAME],
  "__proto__ as name": ['{"name":"__proto__","description":"d"}', NAME],
  "no description": ['{"name":"a"}', DESCRIPTION],
  "a description of null": ['{"name":"a","description":null}', DESCRIPTION],
  "a description that is an object": ['{"name":"a","description":{}}', DESCRIPTION],
  "an empty description": ['{"name":"a","description":""}', DESCRIPTION],
  "a blank description": ['{"name":"a","description":" \\n\\u00a0"}', DESCRIPTION],
  "a description of 1,025 characters": [`{"name":"a","description":"${"d".repeat(1025)}"}`, DESCRIPTION],
  "a description of a megabyte": [`{"name":"a","description":"${"d".repeat(1_000_000)}"}`, DESCRIPTION],
  "a version of null": [`{${good},"version":null}`, OTHER],
  "a version of 1": [`{${good},"version":1}`, OTHER],
  "capabilities of null": [`{${good},"capabilities":null}`, OTHER],
  "capabilities that are text": [`{${good},"capabilities":"x"}`, OTHER],
  "capabilities that are an object": [`{${good},"capabilities":{"length":0}}`, OTHER],
  "a capability of null": [`{${good},"capabilities":["x",null]}`, OTHER],
  "a capability that is an array": [`{${good},"capabilities":[["x"]]}`, OTHER],
  "the name twice": [`{${good},"name":"b"}`, OTHER],
  "everything wrong": ['{"name":"1","description":7,"version":7,"capabilities":7}', NAME],
  "everything wrong but the name": ['{"name":"a","description":7,"version":7,"capabilities":7}', DESCRIPTION],
};

/** Payloads of registrations that are accepted, all with the name `NAME`. */
export const ACCEPTED = {
  "only what is required": '{"name":"NAME","description":"d"}',
  "unknown members": '{"name":"NAME","description":"d","x":{"name":"1"},"constructor":7}',
  "no capabilities": '{"name":"NAME","description":"d","capabilities":[]}',
  "an empty version": '{"name":"NAME","description":"d","version":""}',
  "another order": '{"capabilities":["x"],"version":"1","description":"d","name":"NAME"}',
  "a description of 1,024 characters": `{"name":"NAME","description":"${"ü".repeat(1024)}"}`,
  "a description with white space around": '{"name":"NAME","description":" d "}',
  "escapes": '{"n\\u0061me":"NAME","description":"\\ud83d\\ude00"}',
  "10,000 capabilities": `{"name":"NAME","description":"d","capabilities":[${'"x",'.repeat(9_999)}"x"]}`,
};

export { registration };
