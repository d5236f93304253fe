/** The response to a request; `body` is JSON unless the headers say otherwise. */
export interface Answer {
  status: number
  body?: Buffer | string
  headers?: Readonly<Record<string, string>>
}

export function json(status: number, value: unknown, headers?: Readonly<Record<string, string>>): Answer {
  return { status, body: JSON.stringify(value), ...(headers === undefined ? {} : { headers }) }
}

export const detail = (status: number, words: string, headers?: Readonly<Record<string, string>>) =>
  json(status, { detail: words }, headers)

export const notFound = () => detail(404, 'Not found.')

const titles: Record<number, string> = {
  404: 'Not Found',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Temporarily Unavailable',
  504: 'Gateway Time-out',
}

/** An HTML error page as a gateway in front of the service returns it. */
export function htmlPage(status: number): Answer {
  const title = `${status} ${titles[status] ?? 'Error'}`
  return {
    status,
    body: `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>${title}</h1></center>\r\n</body>\r\n</html>\r\n`,
    headers: { 'content-type': 'text/html' },
  }
}

export function errorAnswer(options: { status?: number; html?: boolean }): Answer {
  const status = options.status ?? 500
  return options.html === true ? htmlPage(status) : detail(status, titles[status] ?? 'Error')
}
