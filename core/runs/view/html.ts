import { createHash } from 'node:crypto'
import { type Cell, cellText, formatCount, formatLocalTime, formatTime, numericColumns } from './format.ts'
import { html, Html } from './html-template.ts'
import { piecesOf, type Sentence } from './sentence.ts'
import { style } from './style.ts'
import type { Count, Fact, NextStep, Problem, Table, View } from './view.ts'

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
  const { title, run, verdict, problems = [], next = [], pageTables } = view
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
          ${section('Details', facts.map(toFact), toFacts)} ${section('Files', files.map(toFile), toList)}
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

/** A date stays on one line. */
const toText = (text: string): Html =>
  html`${text.split(/\b(\d{4}-\d\d-\d\d)\b/).map((piece, at) => (at % 2 === 0 ? html`${piece}` : html`<span class="date">${piece}</span>`))}`

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
  html`${text}${command === undefined ? undefined : html`: <code class="line long">${command}</code>`}`

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

function classOf(cell: Cell, isNumeric = false): string {
  if (cell === '') return 'empty'
  if (isNumeric) return 'number'
  const words = cellText(cell, () => '').split(/\s+/)
  return words.some((word) => word.length > longestWord) ? 'long' : ''
}

/** Nothing for an empty cell, so that a card has no line for it. */
function toContent(cell: Cell): Html | undefined {
  if (cell === '') return undefined
  if (typeof cell === 'string' || typeof cell === 'number')
    return html`<span>${toText(cellText(cell))}</span>`
  if ('time' in cell) return html`<time datetime="${cell.time}">${formatTime(cell.time)}</time>`
  if (cell.href !== undefined) return toLink(cell.href, cell.text)
  return html`<span class="${cell.tone && `pill ${cell.tone}`}">${cell.text}</span>`
}

const toFact = ({ name, value }: Fact) =>
  html`<tr>
    <th scope="row" class="${classOf(name)}">${name}</th>
    <td class="${classOf(value)}">${toContent(value)}</td>
  </tr>`

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
