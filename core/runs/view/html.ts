import { type Cell, cellText, formatCount, numericColumns } from './format.ts'
import { html, Html } from './html-template.ts'
import { piecesOf, type Sentence } from './sentence.ts'
import { style } from './style.ts'
import type { Count, NextStep, Problem, Table, View } from './view.ts'

/**
 * The page's content security policy: display only. No scripts run and nothing is fetched, whatever a text
 * contains.
 */
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

/** Renders a view as one static file that can be mailed, printed and read on a phone: problems first. */
export function toReportPage(view: View): string {
  const { title, run, verdict, summary, problems = [], next = [], counts = [] } = view
  const { tables = [], facts = [], files = [] } = view
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
          <div class="verdict ${verdict?.tone}">
            <strong>${verdict?.word}</strong>
            <p>${verdict?.meaning}</p>
          </div>
          ${summary === undefined ? undefined : html`<p>${summary}</p>`}
          ${section('Look at this', problems.map(toProblem))} ${section('Next', next.map(toStep))}
          ${section(
            'Counts',
            counts.map(toCount),
            (items) =>
              html`${toBar(counts)}
                <dl class="counts">${items}</dl>`,
          )}
          ${tables.map(toTable)}
          ${section(
            'Details',
            facts.map(toFact),
            (rows) =>
              html`<table class="facts">
                <tbody>
                  ${rows}
                </tbody>
              </table>`,
          )}
          ${section('Files', files.map(toFile))}
        </main>
      </body>
    </html> `
  return `${page.text.trim()}\n`
}

function toHeader({ title, run, identity }: View): Html {
  const at = identity?.baseUrl === undefined ? '' : ` at ${identity.baseUrl}`
  return html`<header>
    <h1>${title}</h1>
    <p>
      <span class="mode ${identity?.mode}">${identity?.mode.toUpperCase()}</span> ${identity?.workspace}${at}
    </p>
    <p>Run ${run}</p>
  </header>`
}

function toInline(from: Sentence): Html {
  const pieces = piecesOf(from).map((piece) => {
    if (typeof piece === 'string') return html`${piece}`
    return 'strong' in piece ? html`<b>${piece.strong}</b>` : html`<code>${piece.code}</code>`
  })
  return html`${pieces}`
}

/** Nothing if there is nothing to show. */
function section(title: string, items: readonly Html[], toBody: (items: readonly Html[]) => Html = toList) {
  if (items.length === 0) return undefined
  return html`<section>
    <h2>${title}</h2>
    ${toBody(items)}
  </section>`
}

const toList = (items: readonly Html[]) =>
  html`<ul>
    ${items.map((item) => html`<li>${item}</li>`)}
  </ul>`

const toProblem = ({ text, details = [] }: Problem) =>
  html`${toInline(text)}${details.length === 0 ? undefined : toList(details.map((detail) => html`${detail}`))}`

const toStep = ({ text, command }: NextStep) =>
  html`${text}${command === undefined ? undefined : html`: <code>${command}</code>`}`

const toCount = ({ name, value, tone }: Count) =>
  html`<div>
    <dt class="${tone}">${name}</dt>
    <dd>${formatCount(value)}</dd>
  </div>`

/** A bar with the shares of the counts that have a tone. */
function toBar(counts: readonly Count[]): Html | undefined {
  const shares = counts.filter(({ tone, value }) => tone !== undefined && value > 0)
  const all = shares.reduce((sum, { value }) => sum + value, 0)
  if (all === 0) return undefined
  const label = shares.map(({ name, value }) => `${formatCount(value)} ${name}`).join(', ')
  let from = 0
  const bars = shares.map(({ value, tone }) => {
    const x = (from / all) * 100
    from += value
    return html`<rect class="${tone}" x="${x}" width="${(value / all) * 100}" height="1" />`
  })
  return html`<svg viewBox="0 0 100 1" preserveAspectRatio="none" role="img" aria-label="${label}">
    ${bars}
  </svg>`
}

/** On a phone each row becomes a card whose cells are labelled with their column. */
function toTable({ title, head, rows }: Table): Html | undefined {
  const kinds = numericColumns({ head, rows }).map((isNumeric) => (isNumeric ? 'number' : 'text'))
  const toCell = (cell: Cell, column: number) =>
    html`<td class="${kinds[column]}" data-name="${head[column]}">
      <span>${cellText(cell)}</span>
    </td>`
  const lines = rows.map(
    (row) =>
      html`<tr>
        ${row.map(toCell)}
      </tr>`,
  )
  return section(
    title,
    lines,
    (body) =>
      html`<table class="rows">
        <thead>
          <tr>
            ${head.map((name, column) => html`<th scope="col" class="${kinds[column]}">${name}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${body}
        </tbody>
      </table>`,
  )
}

const toFact = ({ name, value }: NonNullable<View['facts']>[number]) =>
  html`<tr>
    <th scope="row">${name}</th>
    <td>${cellText(value)}</td>
  </tr>`

/** Links only to files beside the page. */
const toFile = ({ name, about }: NonNullable<View['files']>[number]) =>
  html`<a href="./${name.toWellFormed().split('/').map(encodeURIComponent).join('/')}">${name}</a> ${about}`
