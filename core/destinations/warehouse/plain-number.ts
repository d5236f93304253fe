/** A number in one way of writing, so that equal numbers are equal texts: no exponent, no zeros that say nothing. */
export function toPlainNumber(text: string): string {
  const [, sign = '', whole = '', behind = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  if (whole === '') return text
  const digits = whole + behind
  const point = whole.length + Number(exponent)
  const padded = digits.padStart(digits.length + Math.max(0, -point), '0').padEnd(Math.max(point, 0), '0')
  const at = Math.max(point, 0)
  const before = padded.slice(0, at).replace(/^0+/, '') || '0'
  const after = padded.slice(at).replace(/0+$/, '')
  const plain = after === '' ? before : `${before}.${after}`
  return plain === '0' ? '0' : sign + plain
}
