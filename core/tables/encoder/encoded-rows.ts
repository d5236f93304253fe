/** CSV text without a header (or lines of JSON), and how many rows it holds. */
export interface Rows {
  text: string
  rows: number
}

/** Where the records differ from their schema, by path: `customers.aggregations.sales`. */
export interface Drift {
  /** How many values their columns could not hold, and what the first of them looks like. */
  misfits: Record<string, { count: number; example: string }>
  /** How many objects have a field that the schema lacks. */
  unknownFields: Record<string, number>
  /** Of each object of the schema that occurred: the fields that it never had. */
  absent: Record<string, string[]>
}

export const noDrift = (): Drift => ({ misfits: {}, unknownFields: {}, absent: {} })

/** More are not told apart: a service that names fields after its records must not fill the checkpoints. */
const mostUnknownFields = 50

/** Adds the drift of further records. */
export function addDrift(drift: Drift, more: Drift): void {
  // `for in`: once for each record, and almost always empty.
  for (const path in more.misfits) {
    const { count, example } = more.misfits[path]!
    const known = drift.misfits[path]
    drift.misfits[path] = { count: (known?.count ?? 0) + count, example: known?.example ?? example }
  }
  for (const path in more.unknownFields) countField(drift, path, more.unknownFields[path])
  for (const path in more.absent) {
    const fields = more.absent[path]!
    drift.absent[path] = drift.absent[path]?.filter((field) => fields.includes(field)) ?? [...fields]
  }
}

/** Counts a new field. */
export function countField({ unknownFields }: Drift, path: string, count = 1): void {
  if (Object.hasOwn(unknownFields, path) || Object.keys(unknownFields).length < mostUnknownFields)
    unknownFields[path] = (unknownFields[path] ?? 0) + count
}

/** The result of encoding some records. Each record is either a row of the main table or a rejected line. */
export interface EncodedRows {
  /** One entry per table, in the order of the encoder's `tables`. */
  tables: Rows[]
  /** Lines of `rejected.jsonl`: `{"reason", "record"}`, without private values. */
  rejected: Rows
  drift: Drift
}
