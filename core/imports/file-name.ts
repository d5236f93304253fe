import { basename } from 'node:path'

/** The suffix of a workbook's rows, which an import keeps as CSV. */
export const workbookRows = '.rows.csv'

/** The file name as its owner knows it. */
export const shownName = (path: string): string => basename(path, workbookRows)
