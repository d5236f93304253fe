import type { Account, AccountTable, Problem } from './view.ts'
import { formatCount } from './format.ts'
import { html, Html } from './html-template.ts'
import { toPlot } from './plot.ts'
import { style } from './style.ts'

/** What a browser may do with the page: show it. No script runs and nothing is fetched, whatever got into a text. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

/** An account as one static file that can be mailed, printed and read on a phone: problems first. */
export function toReportPage(account: Account): string {
  const { title, run, verdict, problems, pace, tables = [], facts, files = [] } = account
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="referrer" content="no-referrer" />
        <title>${verdict.word}: ${title}, ${run}</title>
        <style>
          ${new Html(style)}
        </style>
      </head>
      <body>
        ${toHeader(account)}
        <main>
          <div class="verdict ${verdict.tone}">
            <strong>${verdict.word}</strong>
            <p>${verdict.meaning}</p>
          </div>
          ${toProblems(problems)} ${toCounts(account)} ${pace && toPlot(pace)} ${tables.map(toTable)}
          ${toFacts(facts)} ${toFiles(files)}
        </main>
      </body>
    </html> `
  return `${page.text.trim()}\n`
}

function toHeader({ title, run, identity }: Account): Html {
  const { mode, workspace, baseUrl } = identity
  const at = baseUrl === undefined ? '' : ` at ${baseUrl}`
  return html`<header>
    <h1>${title}</h1>
    <p><span class="mode ${mode}">${mode.toUpperCase()}</span> ${workspace}${at}</p>
    <p>Run ${run}</p>
  </header>`
}

function toProblems(problems: readonly Problem[]): Html | undefined {
  if (problems.length === 0) return undefined
  return html`<section>
    <h2>Look at this</h2>
    <ul class="problems">
      ${problems.map(
        ({ what, details = [] }) =>
          html`<li>
            ${what}${
              details.length === 0
                ? undefined
                : html`<ul>
                    ${details.map((one) => html`<li>${one}</li>`)}
                  </ul>`
            }
          </li>`,
      )}
    </ul>
  </section>`
}

function toCounts({ counts }: Account): Html | undefined {
  if (counts.length === 0) return undefined
  return html`<section>
    <h2>Counts</h2>
    <dl class="counts">
      ${counts.map(
        ({ name, value }) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${formatCount(value)}</dd>
          </div>`,
      )}
    </dl>
  </section>`
}

/** Amounts come as texts, so that no digit is lost. */
const isNumeric = (cell: string | number | undefined) =>
  typeof cell === 'number' || cell === '' || /^-?\d+(\.\d+)?$/.test(cell ?? '')

/** On a phone each row becomes a card, whose cells say by themselves what they are. */
function toTable({ title, head, rows }: AccountTable): Html {
  const kinds = head.map((_, column) => (rows.every((row) => isNumeric(row[column])) ? 'number' : 'text'))
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
                    <span>${typeof cell === 'number' ? formatCount(cell) : cell}</span>
                  </td>`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </section>`
}

function toFacts(facts: Account['facts']): Html | undefined {
  if (facts.length === 0) return undefined
  return html`<section>
    <h2>How it was done</h2>
    <table class="facts">
      <tbody>
        ${facts.map(
          ({ name, value }) =>
            html`<tr>
              <th scope="row">${name}</th>
              <td>${value}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </section>`
}

/** Links go only to files beside the page, never anywhere else. */
function toFiles(files: NonNullable<Account['files']>): Html | undefined {
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
