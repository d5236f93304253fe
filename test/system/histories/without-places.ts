import { hostname } from 'node:os'

/**
 * A history without the machine it was recorded on: its paths, addresses, names and process ids, in payloads too.
 * What is compared in a replay (which commands, in which order) is left as it was.
 */
export function withoutPlaces(of: { history: object; places: Readonly<Record<string, string>> }): object {
  const { history, places } = of
  const scrub = (text: string) => {
    let clean = text
    for (const [place, name] of Object.entries(places)) clean = clean.replaceAll(place, name)
    return clean.replaceAll(`@${hostname()}`, '@machine').replaceAll(/\b\d+@machine/g, '1@machine')
  }
  return walk(history, scrub) as object
}

function walk(value: unknown, scrub: (text: string) => string): unknown {
  if (typeof value === 'string') return scrub(value)
  if (Array.isArray(value)) return value.map((one) => walk(one, scrub))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, one]) => {
    // A stack names files of the machine.
    if (key === 'stackTrace') return [key, '']
    const isPayload = key === 'data' && 'metadata' in value && typeof one === 'string'
    if (!isPayload) return [key, walk(one, scrub)]
    const text = Buffer.from(one, 'base64').toString('utf8')
    return [key, Buffer.from(scrub(text)).toString('base64')]
  })
  return Object.fromEntries(entries) as unknown
}
