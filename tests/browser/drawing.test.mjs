// How browser.js draws, with elements that only remember what was put into them.
import assert from "node:assert/strict";
import test from "node:test";

class Element {
  constructor(tag) { Object.assign(this, { tag, attributes: {}, children: [], style: {} }); }
  setAttribute(name, value) { this.attributes[name] = value; }
  append(...children) { this.children.push(...children); }
  get text() { return this.children.map((child) => child.text ?? String(child)).join(""); }
  find(tag) { return this.tag === tag ? this : this.children.map((child) => child.find?.(tag)).find(Boolean); }
}
globalThis.document = { createElement: (tag) => new Element(tag) };
const { details, isOurs, option } = await import(process.env.BROWSER_JS);

const ROW = { id: "a1", number: 3, title: "<b>x</b>", age: "1 day ago", messages: 7, matches: 0 };
const PLACE = { id: "o0", place: 2, count: 9, selected: true };

test("a title stays text", () => {
  const drawn = option(ROW, PLACE);
  assert.ok(drawn.text.includes("<b>x</b>"));
  assert.equal(drawn.find("b"), undefined);
});

test("a row tells its place, and whether it is selected, to those who do not see it", () => {
  const { attributes } = option(ROW, PLACE);
  assert.equal(attributes["aria-posinset"], "3");
  assert.equal(attributes["aria-setsize"], "9");
  assert.equal(attributes["aria-selected"], "true");
});

for (const badge of ["current", "live", "hidden"]) {
  test(`a row that is ${badge} says so in a word`, () => {
    assert.ok(option({ ...ROW, [badge]: true }, PLACE).text.includes(badge));
    assert.ok(!option(ROW, PLACE).text.includes(badge));
  });
}

test("a match is marked in its context, with the number of matches", () => {
  const drawn = details({ ...ROW, matches: 4, match: ["the ", "<i>river</i>", " is"] });
  assert.equal(drawn.text, "4 × …the <i>river</i> is…");
  assert.equal(drawn.find("mark").text, "<i>river</i>");
});

test("reasons stand below the title", () => {
  assert.equal(details({ ...ROW, marks: ["empty"] }).text, "1 day ago · 7 messages · empty");
});

test("chords and Shift+Enter are the application's", () => {
  const key = { key: "s", ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
  assert.ok(isOurs(key));
  for (const held of ["ctrlKey", "metaKey", "altKey"]) assert.ok(!isOurs({ ...key, [held]: true }));
  assert.ok(!isOurs({ ...key, key: "Enter", shiftKey: true }));
  assert.ok(isOurs({ ...key, key: "X", shiftKey: true }));
});
