import { toPrintableLine } from '../../core/runs/view/printable.ts'

/**
 * Text of others as Markdown that shows it and no more: the words of a service, the name of a file, run or schedule.
 * It makes no link, image, table cell, heading or line of its own. Everything that goes into Current Details or a
 * summary, and isn't written in this project, passes here.
 */
export const escapeMarkdown = (text: string): string =>
  toPrintableLine(text.trim().replaceAll(/\s+/g, ' '))
    .replaceAll(/[\\`*[\]<>|~#&!]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, String.raw`\$&`)
    // Renderers make links of bare addresses too.
    .replaceAll(/:(?=\/\/)/g, String.raw`\:`)
    .replaceAll(/\bwww\./gi, String.raw`www\.`)
    .replace(/^([-+=])/, String.raw`\$1`)
    .replace(/^(\d+)([.)])/, String.raw`$1\$2`)
