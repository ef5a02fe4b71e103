// The images and files that go along with the next message: images to the model, files to the agent's disk.

import { button, make } from "./page/dom.js";

/** What hosts take with one message. */
const MAX_FILES = 10;
const MAX_FILE_BYTES = 10 * 1024 * 1024;
/** A message of 16 MiB has room for so much, as base64. */
const MAX_BYTES = 11 * 1024 * 1024;

const read = (file) =>
  new Promise((done, failed) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => done(reader.result));
    reader.addEventListener("error", () => failed(reader.error));
    reader.readAsDataURL(file);
  });

/** Shows what goes along in `list`. `complain` gets the reason why something does not. */
export function along(list, complain) {
  let items = [];

  function update() {
    const entries = items.map((item) => {
      const remove = button("quiet", `${item.name} ×`, () => {
        items = items.filter((other) => other !== item);
        update();
      });
      remove.setAttribute("aria-label", `Leave out ${item.name}`);
      const entry = make("li");
      entry.append(remove);
      return entry;
    });
    list.replaceChildren(...entries);
    list.hidden = items.length === 0;
  }

  function refusal(file) {
    const files = items.filter((item) => !item.isImage).length;
    const bytes = items.reduce((sum, item) => sum + item.bytes, file.size);
    if (files >= MAX_FILES) return `${file.name} is not attached: a message takes at most ${MAX_FILES} files.`;
    if (file.size > MAX_FILE_BYTES) return `${file.name} is not attached: a file may have at most 10 MiB.`;
    if (bytes > MAX_BYTES) return `${file.name} is not attached: a message takes at most 11 MiB.`;
    return null;
  }

  return {
    async add(files) {
      for (const file of files) {
        const why = refusal(file);
        if (why !== null) {
          complain(why);
          continue;
        }
        const item = { name: file.name || "image", bytes: file.size, isImage: file.type.startsWith("image/") };
        items.push(item);
        try {
          item.data = await read(file);
        } catch {
          items = items.filter((other) => other !== item);
          complain(`${item.name} cannot be read.`);
        }
        update();
      }
    },
    /** The members of an INPUT. */
    members() {
      const ready = items.filter((item) => item.data !== undefined);
      const images = ready.filter((item) => item.isImage).map((item) => item.data);
      const files = ready.filter((item) => !item.isImage).map(({ name, data }) => ({ name, data }));
      return { ...(images.length > 0 && { images }), ...(files.length > 0 && { files }) };
    },
    /** Their names; the next message goes without them. */
    take() {
      const names = items.filter((item) => item.data !== undefined).map((item) => item.name);
      items = items.filter((item) => item.data === undefined);
      update();
      return names;
    },
  };
}
