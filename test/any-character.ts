import * as fc from 'fast-check'

/** Any code point, for texts. The unit `binary` of fast-check first makes a map of all 1.1 million: a second of the processor. */
export const anyCharacter = fc
  .nat({ max: 0x10_f7ff })
  .map((at) => String.fromCodePoint(at < 0xd800 ? at : at + 0x800))
