/** CSV text without a header (or lines of JSON), and how many rows it holds. */
export interface Rows {
  text: string
  rows: number
}

/** What came of some records. Every one of them is either a row of the main table or a rejected line. */
export interface EncodedRows {
  /** One for each table, in the order of the encoder's `tables`. */
  tables: Rows[]
  /** Lines of `rejected.jsonl`: `{"reason", "record"}`, without what is private. */
  rejected: Rows
  /** How many values their columns could not hold, by place: `customers.aggregations.sales`. */
  drift: Record<string, number>
}
