/** The stylesheet of every page: for phones, large screens in light and dark, and paper. Loads nothing external. */
export const style = `
:root { color-scheme: light; --ink: #1b1f24; --soft: #5a636e; --line: #dfe3e8; --paper: #fff; --wash: #f5f7f9;
  --good: #14713c; --doubtful: #8f5600; --bad: #b3261e; --neutral: #55606d; --link: #1f5fbf; }
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --ink: #e4e8ed; --soft: #98a2ae; --line: #30373f; --paper: #14181c; --wash: #1d2329;
    --good: #57c785; --doubtful: #e3ac4e; --bad: #f28b82; --neutral: #a3adb8; --link: #80b2f7; }
}
* { box-sizing: border-box; }
html { background: var(--paper); -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0 .25rem; letter-spacing: -.01em; }
h2 { font-size: 1.0625rem; margin: 0 0 .6rem; }
p { margin: .35rem 0; }
section, article { margin: 2.25rem 0; }
article > h2 { font-size: 1.25rem; }
article section { margin: 1.5rem 0; }
article section h2 { font-size: 1rem; }
header p, small, .note { color: var(--soft); }
.good { --tone: var(--good); } .doubtful { --tone: var(--doubtful); } .bad { --tone: var(--bad); }
.neutral { --tone: var(--neutral); }
.mode { border: 1px solid; border-radius: 1rem; padding: .1rem .6rem; margin-right: .35rem; font-size: .75rem;
  font-weight: 700; letter-spacing: .06em; }
.mode.live { color: var(--bad); } .mode.test { color: var(--neutral); }
.verdict { margin: 1.5rem 0; padding: 1.1rem 1.3rem; border-radius: .6rem;
  border: 1px solid color-mix(in srgb, var(--tone) 35%, var(--paper));
  background: color-mix(in srgb, var(--tone) 7%, var(--paper)); }
.verdict strong { display: block; font-size: 1.5rem; line-height: 1.3; margin-top: .3rem; letter-spacing: -.01em; }
.pill { color: var(--tone); font-weight: 650; }
.pill::before { content: ""; display: inline-block; width: .55em; height: .55em; margin-right: .45em; border-radius: 50%;
  background: var(--tone); }
.prose > li::first-letter { text-transform: uppercase; }
ul { margin: .4rem 0; padding-left: 1.2rem; }
li { margin: .4rem 0; }
code { font: .875em/1.5 ui-monospace, "Liberation Mono", Menlo, monospace; background: var(--wash);
  border-radius: .25rem; padding: .1em .3em; }
code.line { display: block; margin-top: .35rem; padding: .6rem .8rem; border: 1px solid var(--line); border-radius: .4rem;
  white-space: pre-wrap; user-select: all; }
.counts { display: flex; flex-wrap: wrap; gap: .35rem 2.25rem; margin: .75rem 0 0; }
.counts dt { display: inline; }
.counts dd { display: inline; margin: 0 0 0 .4rem; font-weight: 650; font-variant-numeric: tabular-nums; }
.shares { display: flex; gap: 2px; height: .75rem; border-radius: .375rem; overflow: hidden; }
.shares i { flex-basis: 4px; background: var(--tone); }
.rest { --tone: var(--wash); }
table { width: 100%; border-collapse: collapse; font-size: .9375rem; line-height: 1.4; }
th, td { text-align: left; vertical-align: top; padding: .45rem 0 .45rem 1.25rem; border-bottom: 1px solid var(--line);
  overflow-wrap: normal; }
th:first-child, td:first-child { padding-left: 0; }
th { color: var(--soft); font-size: .8125rem; font-weight: 500; vertical-align: bottom; }
.long { overflow-wrap: anywhere; }
tr:has(+ tr > .empty:first-child) td { border-bottom: 0; }
td.number:not(.long) > *, .word { white-space: nowrap; }
.bars svg { display: block; width: 100%; height: 4.5rem; fill: var(--link); border-bottom: 1px solid var(--line); }
.bars p { display: flex; justify-content: space-between; gap: 1rem; color: var(--soft); font-size: .8125rem; }
.amount i { font-style: normal; margin-left: .18em; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
time, .mode, .date { white-space: nowrap; font-variant-numeric: tabular-nums; }
.bar { width: 34%; min-width: 5rem; vertical-align: middle; }
.facts th { width: 11rem; padding-right: 1rem; font-size: inherit; vertical-align: top; }
summary { cursor: pointer; margin-top: 2.25rem; font-size: 1.0625rem; font-weight: 700; }
a { color: var(--link); text-underline-offset: .15em; }
@media screen and (max-width: 40rem) {
  body { padding: 1.25rem 1rem 3rem; }
  .rows thead { display: none; }
  .rows, .rows tbody { display: block; }
  .rows tr { display: block; padding: .6rem 0; border-bottom: 1px solid var(--line); }
  .rows td { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 1.25rem; padding: .1rem 0; border: 0; }
  .rows td::before { content: attr(data-name); color: var(--soft); max-width: 50%; overflow-wrap: anywhere; }
  .rows td:first-child { justify-content: start; font-weight: 650; }
  .rows td:first-child::before, .rows .bar::before { content: none; }
  .rows .empty, .rows .bar:not(:has(i)) { display: none; }
  .rows td > * { min-width: 0; text-align: right; }
  .rows td:first-child > * { text-align: left; }
  .rows .bar { width: auto; padding: .35rem 0; }
  .rows .shares { flex: 1; }
  .facts th, .facts td { display: block; width: auto; padding: 0; border: 0; }
  .facts td { padding-bottom: .6rem; }
}
@media print {
  @page { margin: 12mm 14mm; }
  html { font-size: 8.5pt; }
  body { max-width: none; padding: 0; line-height: 1.4; }
  h1 { margin: .3rem 0 .1rem; }
  h2 { margin: 0 0 .2rem; break-after: avoid; }
  p, li { margin: .2rem 0; }
  section, article { margin: 1rem 0; }
  article section { margin: .7rem 0; }
  .verdict { margin: .7rem 0; padding: .5rem 1rem; }
  .verdict strong { margin: 0; }
  table { line-height: 1.3; }
  th, td { padding: .15rem 0 .15rem .7rem; }
  code.line { margin-top: .15rem; padding: .3rem .6rem; }
  tr, li, .verdict, .shares, .bars { break-inside: avoid; }
  .bars svg { height: 2.5rem; }
  details:not([open]) { display: none; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
`
