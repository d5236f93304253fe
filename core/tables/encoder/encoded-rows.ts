/** CSV text without a header (or lines of JSON), and how many rows it holds. */
export interface Rows {
  text: string
  rows: number
}

/** The result of encoding some records. Each record is either a row of the main table or a rejected line. */
export interface EncodedRows {
  /** One entry per table, in the order of the encoder's `tables`. */
  tables: Rows[]
  /** Lines of `rejected.jsonl`: `{"reason", "record"}`, without private values. */
  rejected: Rows
  /** The number of values that their columns could not hold, by path: `customers.aggregations.sales`. */
  drift: Record<string, number>
}
