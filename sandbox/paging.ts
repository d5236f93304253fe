/** Django takes the last value of a repeated parameter. */
export function lastParam(query: URLSearchParams, name: string): string | undefined {
  return query.getAll(name).at(-1)
}

const DEFAULT_SIZE = 20
const MOST = 100

/**
 * The page size as Django REST framework reads it: anything but a positive number means the default, too
 * large a size the maximum.
 */
export function pageSizeOf(
  query: URLSearchParams,
  limit: { cap: number; fixed?: boolean } | undefined,
): number {
  if (limit?.fixed === true) return limit.cap
  const asked = lastParam(query, 'page_size') ?? ''
  const size = /^\d+$/.test(asked) && Number(asked) > 0 ? Number(asked) : DEFAULT_SIZE
  return Math.min(size, MOST, limit?.cap ?? MOST)
}

/** The requested page; undefined if it does not exist. Page 1 of an empty list exists. */
export function pageOf(query: URLSearchParams, pages: number): number | undefined {
  const asked = lastParam(query, 'page') ?? '1'
  if (asked === 'last') return pages
  const page = /^\d+$/.test(asked) ? Number(asked) : 0
  return page >= 1 && page <= pages ? page : undefined
}

/** The absolute address of another page: sorted parameters, and no `page` for the first one. */
export function pageLink(options: {
  base: string
  path: string
  query: URLSearchParams
  page: number
}): string {
  const query = new URLSearchParams(options.query)
  query.delete('page')
  if (options.page > 1) query.set('page', String(options.page))
  query.sort()
  const params = query.toString()
  return `${options.base}${options.path}${params === '' ? '' : `?${params}`}`
}
