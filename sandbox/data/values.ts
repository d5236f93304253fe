/** Ids, amounts and texts as real records have them, also those that break readers, writers and spreadsheets. */
import { Big } from 'big.js'
import { type Chance, mix } from './random.ts'

/**
 * Text ids that do not follow the order of `created` and sort differently by bytes and by locale. They end
 * in the index, which makes them unique and lets one record reference another.
 */
export function textId(prefix: string, index: number): string {
  const bits = mix(prefix.length * 31 + prefix.charCodeAt(0), index)
  const scattered = (bits % 1_679_616).toString(36).padStart(4, '0')
  const cased = bits & 1 ? scattered.toUpperCase() : scattered
  return `${prefix}_${cased}${index.toString(36).padStart(5, '0')}`
}

/** A number that is sent digit for digit as written here: `JSON.stringify(1500.50)` would lose its zero. */
export function decimal(text: string): { readonly rawJSON: string } {
  return JSON.rawJSON(text)
}

const awkwardAmounts = [
  '12345678901234567.89',
  '0.10',
  '1500.50',
  '0.00',
  '-0.01',
  '99999999999999999999.9999',
  '1e3',
]

/** Draws realistic amounts, occasionally one that a double cannot hold. */
export function drawAmount(chance: Chance): { readonly rawJSON: string } {
  if (chance.happens(0.04)) return decimal(chance.pick(awkwardAmounts))
  const cents = chance.happens(0.5) ? '00' : String(chance.below(100)).padStart(2, '0')
  return decimal(`${chance.below(5_000_000)}.${cents}`)
}

/**
 * Parses a body, keeping as JSON.rawJSON any number that a double would change (0.10, 12345678901234567.89).
 * @throws {SyntaxError} the text is not JSON
 */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, (_key, value, context: { source?: string }) =>
    typeof value === 'number' && context.source !== undefined && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value,
  )
}

/** The digits of a number, or of text that Django would accept as one. */
export function numberText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  if (JSON.isRawJSON(value)) return value.rawJSON
  return typeof value === 'string' && /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(value)
    ? value.trim()
    : undefined
}

/** The exact product of two decimals, without an exponent; undefined if one is not a plain decimal. */
export function multiply(one: string, other: string): string | undefined {
  const plain = /^-?\d+(?:\.(\d+))?$/
  const [first, second] = [plain.exec(one), plain.exec(other)]
  if (!first || !second) return undefined
  const places = (first[1] ?? '').length + (second[1] ?? '').length
  return new Big(one).times(other).toFixed(places)
}

/** Texts that break readers, writers and spreadsheets, all from real data. */
export const awkwardNames: readonly string[] = [
  'Comercial Ñandú, Hijos y Cía. "La 9"',
  '=HYPERLINK("http://127.0.0.1/","Haga clic")',
  '+56 Telecom SpA',
  '-Descuentos-',
  '@Agencia Digital',
  'Líneas\nAéreas\r\ndel Sur',
  '\tTabulada S.A.',
  'Panadería 🥖 «El Trigal» 👩‍🍳',
  "O'Higgins & Asociados; Ltda.",
  '  espacios alrededor  ',
  'Ünïcödé ﷽ 株式会社 مرحبا',
  '"entre comillas"',
  '\\N',
  'NULL',
  '0012',
  '1e5',
]

export const plainNames: readonly string[] = [
  'Transportes del Valle',
  'Viña Los Aromos',
  'Clínica Santa Elena',
  'Ferretería El Martillo',
  'Constructora Maipo',
  'Colegio San Andrés',
  'Importadora Austral',
  'Estudio Jurídico Rojas',
  'Minera Quebrada Alta',
  'Librería Cervantes',
  'Pesquera Los Lagos',
  'Hotel Atacama',
]

export const notes: readonly (string | null)[] = [
  null,
  '',
  'Cliente preferente',
  'Pagar antes del día 5, "sin falta"',
  '=1+1',
  'línea uno\nlínea dos',
  '🙂 gracias; saludos',
]

export const streets: readonly string[] = [
  'Av. Providencia 1234, Of. 501',
  'Calle 72 # 10-34, Piso 3\nBogotá D.C.',
  'Paseo de la Reforma 222; Col. Juárez',
  'Los "Almendros" 55',
  '',
]

export const phones: readonly (string | null)[] = [
  '+56 9 8765 4321',
  '+573001234567',
  '(55) 5123-4567',
  '-',
  '',
  null,
]
