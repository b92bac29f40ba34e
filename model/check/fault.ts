/** Reports a fault of the element at `path`, at its attribute if one is named. */
export type ReportFault = (
  code: string,
  message: string,
  path: string,
  more?: { readonly hint?: string | undefined; readonly attribute?: string },
) => void;
