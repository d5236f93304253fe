import { basename } from 'node:path'

/** Added to the name of a workbook for its rows, which an import keeps as CSV. */
export const workbookRows = '.rows.csv'

/** The name of a file as its owner knows it. */
export const shownName = (path: string): string => basename(path, workbookRows)
