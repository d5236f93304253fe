import { createHash } from 'node:crypto'
import { style } from './style.ts'
import { type Cell, cellText, formatCount, formatLocalTime, formatTime, numericColumns } from './format.ts'
import {
  type Count,
  type Fact,
  type NextStep,
  piecesOf,
  type Problem,
  type Sentence,
  type Sheet,
  type Table,
  type View,
} from './view.ts'

/** Shows each time in the zone of the reader. Without scripts, the page shows UTC. */
const script = `const format = ${String(formatLocalTime)}
for (const time of document.querySelectorAll('time')) time.textContent = format(time.dateTime)`

/**
 * The page's content security policy: display only. No other script runs and nothing is fetched, whatever a text
 * contains.
 */
const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'; base-uri 'none'; form-action 'none'`

/** Renders a view as one static file that can be mailed, printed and read on a phone: the outcome first. */
export function toReportPage(view: View): string {
  const {
    title,
    run,
    verdict,
    problems = [],
    notices = [],
    next = [],
    pageTables,
    sheets = [],
    checks = [],
  } = view
  const { tables = [], facts = [], evidence = [], files = [] } = view
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="referrer" content="no-referrer" />
        <title>${verdict?.word}: ${title}, ${run}</title>
        <style>
          ${new Html(style)}
        </style>
      </head>
      <body>
        ${toHeader(view)}
        <main>
          ${toVerdict(view)} ${toCounts(view)} ${section('Needs attention', problems.map(toProblem), toProse)}
          ${section('Next', next.map(toStep), toProse)} ${(pageTables ?? tables).map(toTable)}
          ${sheets.map(toSheet)} ${section('Notices', notices.map(toProblem), toProse)}
          ${section('Details', facts.map(toFact), toFacts)} ${section('Files', files.map(toFile), toList)}
          ${section('How to check it', checks.map(toStep), toProse)}
          ${
            evidence.length === 0
              ? undefined
              : html`<details>
                  <summary>How it was read</summary>
                  ${toFacts(evidence.map(toFact))}
                </details>`
          }
        </main>
        ${new Html(`<script>${script}</script>`)}
      </body>
    </html> `
  return `${page.text.trim()}\n`
}

function toHeader({ title, run, identity }: View): Html {
  const at = identity?.baseUrl === undefined ? '' : ` at ${identity.baseUrl}`
  return html`<header>
    <p>
      <span class="mode ${identity?.mode}">${identity?.mode.toUpperCase()}</span> ${identity?.workspace}${at}
    </p>
    <h1>${title}</h1>
    <p>Run ${run}</p>
  </header>`
}

const toVerdict = ({ verdict }: View) =>
  html`<div class="verdict ${verdict?.tone}">
    <span class="pill">${verdict?.word}</span>
    <strong>${verdict?.headline}</strong>
    <p>${verdict?.meaning}</p>
  </div>`

/** A date, with its time, stays on one line, and a path is broken behind its slashes. */
const toText = (text: string): Html =>
  html`${text.split(/\b(\d{4}-\d\d-\d\d(?:T[\d:.-]*\dZ?)?)(?!\d)/).map((piece, at) => (at % 2 === 0 ? toPath(piece) : html`<span class="date">${piece}</span>`))}`

const toPath = (text: string): Html =>
  html`${text.split(/(?<=\/)/).map((piece, at) => (at === 0 ? html`${piece}` : html`<wbr />${piece}`))}`

function toInline(from: Sentence): Html {
  const pieces = piecesOf(from).map((piece) => {
    if (typeof piece === 'string') return toText(piece)
    return 'strong' in piece ? html`<b>${piece.strong}</b>` : html`<code>${piece.code}</code>`
  })
  return html`${pieces}`
}

/** Nothing if there is nothing to show. */
function section(title: string, items: readonly Html[], toBody: (items: readonly Html[]) => Html) {
  if (items.length === 0) return undefined
  return html`<section>
    ${title === '' ? undefined : html`<h2>${toText(title)}</h2>`} ${toBody(items)}
  </section>`
}

const toList = (items: readonly Html[], kind?: string) =>
  html`<ul class="${kind}">
    ${items.map((item) => html`<li>${item}</li>`)}
  </ul>`

/** Sentences, of which a page shows the first letter large. */
const toProse = (items: readonly Html[]) => toList(items, 'prose')

const toProblem = ({ text, details = [] }: Problem) =>
  html`${toInline(text)}${details.length === 0 ? undefined : toList(details.map(toText))}`

const toStep = ({ text, command }: NextStep) =>
  html`${text}${command === undefined ? undefined : html`: <code class="line long">${toText(command)}</code>`}`

function toCounts({ counts = [], unit }: View): Html | undefined {
  if (counts.length === 0) return undefined
  const items = counts.map(
    ({ name, value, tone }) =>
      html`<div>
        <dt class="${tone && `pill ${tone}`}">${name}</dt>
        <dd>${formatCount(value)}</dd>
      </div>`,
  )
  return html`<section aria-label="${unit}">
    ${toBar(counts)}
    <dl class="counts">${items}</dl>
  </section>`
}

/**
 * A bar with the shares of the counts that have a tone.
 * @param whole the sum that fills the bar
 */
function toBar(counts: readonly Count[], whole?: number): Html | undefined {
  const shares = counts.filter(({ tone, value }) => tone !== undefined && value > 0)
  const sum = sumOf(shares)
  if (sum === 0) return undefined
  const label = shares.map(({ name, value }) => `${formatCount(value)} ${name}`).join(', ')
  const share = (tone: string | undefined, value: number) =>
    html`<i class="${tone}" style="flex-grow: ${value}"></i>`
  return html`<div class="shares" role="img" aria-label="${label}">
    ${shares.map(({ tone, value }) => share(tone, value))}
    ${whole === undefined || whole === sum ? undefined : share('rest', whole - sum)}
  </div>`
}

const sumOf = (counts: readonly Count[]): number => counts.reduce((sum, { value }) => sum + value, 0)

/** On a phone each row becomes a card whose cells are labelled with their column. */
function toTable(table: Table): Html | undefined {
  const { title, head, rows, tones = [] } = table
  const isNumeric = numericColumns(table)
  const bars = rows.map((row) =>
    row.flatMap((value, column): Count[] => {
      const tone = tones[column]
      return tone !== undefined && typeof value === 'number'
        ? [{ name: head[column] ?? '', value, tone }]
        : []
    }),
  )
  const widest = Math.max(...bars.map(sumOf))
  const toCell = (cell: Cell, column: number) =>
    html`<td class="${classOf(cell, isNumeric[column])}" data-name="${head[column]}">${toContent(cell)}</td>`
  const lines = rows.map(
    (row, at) =>
      html`<tr>
        ${row.map(toCell)}
        ${tones.length > 0 ? html`<td class="bar">${toBar(bars[at] ?? [], widest)}</td>` : undefined}
      </tr>`,
  )
  return section(
    title,
    lines,
    (body) =>
      html`<table class="rows">
        <thead>
          <tr>
            ${head.map((name, column) => html`<th scope="col" class="${isNumeric[column] ? 'number' : undefined} ${classOf(name)}">${name}</th>`)}
            ${tones.length > 0 ? html`<td></td>` : undefined}
          </tr>
        </thead>
        <tbody>
          ${body}
        </tbody>
      </table>`,
  )
}

/** Words up to this length are never broken over a line; longer ones may be, or the table would leave the page. */
const longestWord = 24
const longestNumber = 40

function classOf(cell: Cell, isNumeric = false): string {
  if (cell === '') return 'empty'
  const words = cellText(cell, () => '').split(/\s+/)
  const isLong = words.some((word) => word.length > (isNumeric ? longestNumber : longestWord))
  return `${isNumeric ? 'number' : ''} ${isLong ? 'long' : ''}`.trim()
}

/** Groups of three digits, separated by nothing that a copy would have. */
function toAmount(amount: string): Html {
  const [first, ...groups] = amount.split(/\B(?=(?:\d{3})+(?:\.|$))(?<!\..*)/)
  return html`<span class="amount">${first}${groups.map((group) => html`<i>${group}</i>`)}</span>`
}

/** Nothing for an empty cell, so that a card has no line for it. */
function toContent(cell: Cell): Html | undefined {
  if (cell === '') return undefined
  if (typeof cell === 'string' || typeof cell === 'number')
    return html`<span>${toText(cellText(cell))}</span>`
  if ('time' in cell) return html`<time datetime="${cell.time}">${formatTime(cell.time)}</time>`
  if ('amount' in cell) return toAmount(cell.amount)
  if (cell.href !== undefined) return toLink(cell.href, cell.text)
  const isWord = cell.text.length <= longestWord
  return html`<span class="${cell.tone && `pill ${cell.tone}`} ${isWord ? 'word' : ''}">${cell.text}</span>`
}

const toFact = ({ name, value }: Fact) => {
  const cells = [value].flat()
  return html`<tr>
    <th scope="row" class="${classOf(name)}">${name}</th>
    <td class="${cells.some((cell) => classOf(cell) === 'long') ? 'long' : ''}">
      ${cells.map((cell) => html`${toContent(cell)} `)}
    </td>
  </tr>`
}

/** A bar for each count, and the largest in words. */
function toBars({ title, of }: NonNullable<Sheet['bars']>): Html {
  const most = of.reduce((a, b) => (b.value > a.value ? b : a))
  const bar = ({ name, value }: { name: string; value: number }, at: number) => {
    const height = (100 * value) / most.value
    return html`<rect x="${at + 0.1}" y="${100 - height}" width=".8" height="${height}"
      ><title>${name}: ${formatCount(value)}</title></rect
    >`
  }
  const [first, last] = [of[0]?.name, of.at(-1)?.name]
  const words = `at most ${formatCount(most.value)}, in ${most.name}`
  return html`<section class="bars">
    <h2>${title}</h2>
    <svg viewBox="0 0 ${of.length} 100" preserveAspectRatio="none" role="img" aria-label="${title}: ${words}">
      ${of.map(bar)}
    </svg>
    <p><span>${first}</span> <span>${words}</span> <span>${last}</span></p>
  </section>`
}

const toSheet = ({ title, facts, bars, tables }: Sheet) =>
  html`<article>
    <h2>${title}</h2>
    ${toFacts(facts.map(toFact))} ${bars && toBars(bars)} ${tables.map(toTable)}
  </article>`

const toFacts = (rows: readonly Html[]) =>
  html`<table class="facts">
    <tbody>
      ${rows}
    </tbody>
  </table>`

/** Links only to files beside the page. */
const toLink = (path: string, text: string) =>
  html`<a href="./${path.toWellFormed().split('/').map(encodeURIComponent).join('/')}">${text}</a>`

const toFile = ({ name, about }: NonNullable<View['files']>[number]) => html`${toLink(name, name)} ${about}`

/** Trusted HTML; any other text is escaped when inserted. */
class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Part = Html | string | number | undefined | readonly (Html | undefined)[]

/** Builds HTML from a template: every inserted text is escaped, for both content and quoted attributes. */
function html(markup: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(markup.map((text, at) => text + toMarkup(parts[at])).join(''))
}

function toMarkup(part: Part): string {
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
