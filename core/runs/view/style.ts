/** For phones, large screens and paper. Loads nothing external. */
export const style = `
:root { color-scheme: light; --ink: #1c1e21; --soft: #5b6168; --line: #d9dce0; --paper: #fff; --wash: #f5f6f8;
  --good: #12703a; --doubtful: #8a5300; --bad: #b3201f; --neutral: #444b54; --link: #2f5fa8; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 56rem; padding: 1.25rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p { margin: .4rem 0; }
header p { color: var(--soft); }
.mode { display: inline-block; border: 2px solid; border-radius: .25rem; padding: 0 .4rem; font-weight: 700;
  letter-spacing: .04em; }
.mode.live { color: var(--bad); } .mode.test { color: var(--neutral); }
.verdict { margin: 1.25rem 0 0; padding: .9rem 1.1rem; border-left: .5rem solid; background: var(--wash); }
.verdict strong { display: block; font-size: 1.6rem; line-height: 1.2; text-transform: uppercase; }
.verdict p { color: var(--ink); }
.good { color: var(--good); } .doubtful { color: var(--doubtful); }
.bad { color: var(--bad); } .neutral { color: var(--neutral); }
ul { margin: .4rem 0; padding-left: 1.25rem; }
li { margin: .35rem 0; }
.counts { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .5rem; margin: 0; }
.counts div { border: 1px solid var(--line); border-radius: .35rem; padding: .5rem .7rem; }
.counts dt { color: var(--soft); font-size: .875rem; }
.counts dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.counts dt[class]:not([class=""])::before { content: "■ "; }
.counts dt.good { color: var(--good); } .counts dt.doubtful { color: var(--doubtful); }
.counts dt.bad { color: var(--bad); } .counts dt.neutral { color: var(--neutral); }
svg { display: block; width: 100%; height: 1.25rem; margin-bottom: .6rem; border-radius: .25rem; }
rect { fill: currentColor; }
code { font: .9em/1.4 ui-monospace, "Liberation Mono", Menlo, monospace; background: var(--wash); padding: .1em .3em; }
table { width: 100%; border-collapse: collapse; font-size: .9375rem; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .5rem .3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
th + th, td + td { padding-left: .75rem; }
.facts th { width: 32%; font-weight: 400; }
a { color: var(--link); }
@media screen and (max-width: 34rem) {
  .rows thead { display: none; }
  .rows tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); }
  .rows td { display: flex; justify-content: space-between; gap: 1rem; padding: .1rem 0; border: 0; text-align: left; }
  .rows td::before { content: attr(data-name); color: var(--soft); flex: none; max-width: 50%; }
  .rows td[data-name=""] { justify-content: start; font-weight: 600; }
  .rows td[data-name=""]::before { content: none; }
  .rows td span { min-width: 0; }
  .rows .number span { text-align: right; }
}
@media print {
  @page { margin: 15mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  section, tr, .verdict, svg { break-inside: avoid; }
  h2 { break-after: avoid; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
`
