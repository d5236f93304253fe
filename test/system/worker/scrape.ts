/** A sample of a scrape. */
export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

/** Reads the text format of Prometheus. */
export function parseMetrics(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const [, name = '', labels = '', value] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (value === undefined) return []
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)]
    return [{ name, labels: Object.fromEntries(pairs.map(([, key, said]) => [key, said])), value: +value }]
  })
}

export async function scrape(url: string): Promise<Sample[]> {
  const response = await fetch(`${url}/metrics`)
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  return parseMetrics(await response.text())
}

/** The sum of all samples of a name that carry these labels. */
export function sumOf(samples: readonly Sample[], name: string, labels: Record<string, string> = {}): number {
  const wanted = Object.entries(labels)
  return samples
    .filter((one) => one.name === name && wanted.every(([key, value]) => one.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0)
}
