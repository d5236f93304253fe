/** Trusted HTML; any other text is escaped when inserted. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Part = Html | string | number | undefined | readonly (Html | undefined)[]

/** Builds HTML from a template: every inserted text is escaped, for both content and quoted attributes. */
export function html(markup: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(markup.map((text, at) => text + toText(parts[at])).join(''))
}

function toText(part: Part): string {
  if (part === undefined) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'object') return part.map((html) => html?.text ?? '').join('')
  return escape(String(part))
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/**
 * Control characters and lone surrogates are not valid HTML; direction marks would reorder the surrounding
 * text.
 */
function escape(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\P{Cc}\t\n]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '\u{fffd}')
    .replaceAll(/[&<>"']/g, (letter) => entities[letter] ?? '')
}
