import { cellText, formatCount, numericColumns } from './format.ts'
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
          ${summary === undefined ? undefined : html`<p>${summary}</p>`} ${toProblems(problems)}
          ${toNext(next)} ${toCounts(counts)} ${tables.filter(({ rows }) => rows.length > 0).map(toTable)}
          ${toFacts(facts)} ${toFiles(files)}
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

function toProblems(problems: readonly Problem[]): Html | undefined {
  if (problems.length === 0) return undefined
  return html`<section>
    <h2>Look at this</h2>
    <ul class="problems">
      ${problems.map(
        ({ text, details = [] }) =>
          html`<li>
            ${toInline(text)}${
              details.length === 0
                ? undefined
                : html`<ul>
                    ${details.map((detail) => html`<li>${detail}</li>`)}
                  </ul>`
            }
          </li>`,
      )}
    </ul>
  </section>`
}

function toNext(next: readonly NextStep[]): Html | undefined {
  if (next.length === 0) return undefined
  return html`<section>
    <h2>Next</h2>
    <ul class="next">
      ${next.map(
        ({ text, command }) =>
          html`<li>${text}${command === undefined ? '' : html`: <code>${command}</code>`}</li>`,
      )}
    </ul>
  </section>`
}

function toCounts(counts: readonly Count[]): Html | undefined {
  if (counts.length === 0) return undefined
  return html`<section>
    <h2>Counts</h2>
    ${toBar(counts)}
    <dl class="counts">
      ${counts.map(
        ({ name, value, tone }) =>
          html`<div>
            <dt class="${tone}">${name}</dt>
            <dd>${formatCount(value)}</dd>
          </div>`,
      )}
    </dl>
  </section>`
}

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
function toTable({ title, head, rows }: Table): Html {
  const kinds = numericColumns({ head, rows }).map((isNumeric) => (isNumeric ? 'number' : 'text'))
  return html`<section>
    <h2>${title}</h2>
    <table class="rows">
      <thead>
        <tr>
          ${head.map((name, column) => html`<th scope="col" class="${kinds[column]}">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              ${row.map(
                (cell, column) =>
                  html`<td class="${kinds[column]}" data-name="${head[column]}">
                    <span>${cellText(cell)}</span>
                  </td>`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </section>`
}

function toFacts(facts: NonNullable<View['facts']>): Html | undefined {
  if (facts.length === 0) return undefined
  return html`<section>
    <h2>Details</h2>
    <table class="facts">
      <tbody>
        ${facts.map(
          ({ name, value }) =>
            html`<tr>
              <th scope="row">${name}</th>
              <td>${cellText(value)}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </section>`
}

/** Links only to files beside the page. */
function toFiles(files: NonNullable<View['files']>): Html | undefined {
  if (files.length === 0) return undefined
  return html`<section>
    <h2>Files</h2>
    <ul>
      ${files.map(
        ({ name, about }) =>
          html`<li>
            <a href="./${name.toWellFormed().split('/').map(encodeURIComponent).join('/')}">${name}</a>
            ${about}
          </li>`,
      )}
    </ul>
  </section>`
}
