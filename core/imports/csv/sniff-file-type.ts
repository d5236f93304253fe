/** How to save a workbook in a readable format, in the words of the spreadsheet's menu. */
const howToSave =
  'Open it, choose File > Save as, select the type "CSV UTF-8 (delimited)", and import that file. Each sheet becomes a file of its own.'

const startsWith = (bytes: Buffer, ...start: number[]) => start.every((byte, at) => bytes[at] === byte)

/**
 * Why a file is not CSV, and how to fix it, from its first bytes; undefined if it may be CSV. `start`: the
 * first 64 KB, where a zip archive names its first entries.
 */
export function notCsvReason(start: Buffer): string | undefined {
  if (startsWith(start, 0x50, 0x4b)) return zipReason(start)
  if (startsWith(start, 0xd0, 0xcf, 0x11, 0xe0)) return `is a workbook (.xls), not a CSV file. ${howToSave}`
  if (startsWith(start, 0x1f, 0x8b)) return 'is compressed (gzip). Unpack it and import the CSV file inside.'
  const text = start.toString('latin1')
  if (/^(\xff\xfe|\xfe\xff|([^\0]\0){4}|(\0[^\0]){4})/.test(text))
    return 'is text in UTF-16 ("Unicode text"). Save it as "CSV UTF-8" instead.'
  if (text.startsWith('%PDF')) return 'is a PDF, not a CSV file. Export the table itself as CSV.'
  if (/^(\xef\xbb\xbf)?\s*(<(!|\?xml|html|head|body|table|meta|style|div)|MIME-Version:)/i.test(text))
    return `is a web page or XML, whatever its name says. ${howToSave}`
  if (text.includes('\0')) return 'is binary, not text. Import a CSV file.'
  return undefined
}

function zipReason(start: Buffer): string {
  const text = start.toString('latin1')
  return /\[Content_Types\]\.xml|xl\/|opendocument\.spreadsheet/.test(text)
    ? `is a workbook (.xlsx or .ods), not a CSV file. ${howToSave}`
    : 'is a zip archive. Unpack it and import the CSV file inside.'
}
