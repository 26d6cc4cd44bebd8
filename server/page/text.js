// Labels and file names in sentences. They come from others, and may be written from right to left.

const CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const RIGHT_TO_LEFT = /\p{Script=Hebrew}|\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Thaana}|\p{Script=Nko}|\p{Script=Adlam}/u;

// The text, such that it does not change the order of what stands beside it: without the characters that would, and
// isolated if it runs from right to left.
export function isolated(text) {
  const plain = text.replace(CONTROLS, "");
  return RIGHT_TO_LEFT.test(plain) ? `\u2068${plain}\u2069` : plain;
}

// The name of a class that was found.
/** @type {(finding: any) => string} */
export const nameOf = ({label, class_index, index}) => isolated(label) || `class ${class_index ?? index}`;
